// Which stretch of time is shown: wheel, drag, double click, keys and buttons.

const SMALLEST = 1e-7; // of the whole
const GESTURE = 400; // ms: a wheel that turns on belongs to what it began over

// Moves the range, keeps it within the whole, and tells the kernel once the hand rests.
function makeZoom(model, state, repaint, signal) {
  let telling = 0;
  const show = ([from, to]) => {
    const whole = state.whole[1] - state.whole[0];
    const span = Math.min(Math.max(to - from, whole * SMALLEST), whole);
    const begin = Math.min(Math.max(from, state.whole[0]), state.whole[1] - span);
    state.range = span === whole ? state.whole : [begin, begin + span];
    state.chosen = span === whole ? null : state.range; // the kernel's echo of an older one must not undo it
    model.set("zoom", span === whole ? [] : state.range);
    clearTimeout(telling);
    telling = setTimeout(() => model.save_changes(), 150);
    repaint();
  };
  signal.addEventListener("abort", () => clearTimeout(telling));
  return {
    show,
    all: () => show(state.whole),
    by(share) { // to the right
      const [from, to] = state.range, shift = share * (to - from);
      show([from + shift, to + shift]);
    },
    // `factor` < 1 shows less; what is at `at` stays where it is
    around(factor, at = (state.range[0] + state.range[1]) / 2) {
      const [from, to] = state.range;
      show([at - (at - from) * factor, at + (to - at) * factor]);
    },
  };
}

function addWheel(canvas, el, state, zoom, signal) {
  let elsewhere = -Infinity; // when the page was last scrolled: its gesture ends over us, and is not ours
  window.addEventListener("wheel", (event) => {
    if (event.target !== canvas) elsewhere = event.timeStamp;
  }, { capture: true, passive: true, signal });
  canvas.addEventListener("wheel", (event) => {
    if (event.timeStamp - elsewhere < GESTURE) { elsewhere = event.timeStamp; return; }
    const ours = event.ctrlKey || event.metaKey || el.contains(document.activeElement);
    if (!state.scales || !ours) return; // the page scrolls on, until the picture has been clicked
    event.preventDefault();
    event.stopPropagation();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > (event.shiftKey ? 0 : Math.abs(event.deltaY))) return zoom.by(sideways / state.scales.width);
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoom.around(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * lines * 0.002))), timeAt(canvas, state, event));
  }, { passive: false, signal });
}

function timeAt(canvas, state, event) {
  return state.scales.time(event.clientX - canvas.getBoundingClientRect().left - state.scales.lanes.left);
}

// Drag moves; with Shift it chooses the stretch to show. Double click shows all.
function addDrag(canvas, state, zoom, signal) {
  let drag = null;
  const band = document.createElement("div");
  band.className = "pipeline-band";
  canvas.after(band);
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !state.scales) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.clientX, at: timeAt(canvas, state, event), range: state.range, choose: event.shiftKey };
  }, { signal });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const by = event.clientX - drag.x;
    if (drag.choose) {
      const left = drag.x - canvas.getBoundingClientRect().left;
      Object.assign(band.style, { display: "block", left: `${Math.min(left, left + by)}px`, width: `${Math.abs(by)}px` });
    } else {
      zoom.show(drag.range.map((time) => time - by / state.scales.perMs));
    }
  }, { signal });
  const end = (event) => {
    if (drag && drag.choose && Math.abs(event.clientX - drag.x) > 3) {
      zoom.show([drag.at, timeAt(canvas, state, event)].sort((a, b) => a - b));
    }
    drag = null;
    band.style.display = "none";
  };
  canvas.addEventListener("pointerup", end, { signal });
  canvas.addEventListener("pointercancel", () => { drag = null; band.style.display = "none"; }, { signal });
  canvas.addEventListener("dblclick", zoom.all, { signal });
}

function addKeyboard(el, zoom, signal) {
  const actions = {
    ArrowLeft: () => zoom.by(-0.15), ArrowRight: () => zoom.by(0.15), Home: zoom.all, 0: zoom.all,
    "+": () => zoom.around(0.6), "=": () => zoom.around(0.6), "-": () => zoom.around(1 / 0.6),
  };
  el.tabIndex = 0;
  el.dataset.lmSuppressShortcuts = "true"; // JupyterLab leaves our keys alone
  el.addEventListener("keydown", (event) => {
    if (event.target !== el || event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }, { signal });
}

function makeButtons(zoom) {
  const row = document.createElement("div");
  row.className = "pipeline-tools";
  for (const [text, title, act] of [
    ["−", "Zoom out (key −; Ctrl and wheel, or the wheel alone after a click)", () => zoom.around(1 / 0.6)],
    ["+", "Zoom in (key +; Ctrl and wheel, or the wheel alone after a click)", () => zoom.around(0.6)],
    ["Fit", "Show all (key 0, or double click)", zoom.all],
  ]) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: text, title });
    button.setAttribute("aria-label", title.split(" (")[0]);
    button.addEventListener("click", act);
    row.append(button);
  }
  return row;
}
