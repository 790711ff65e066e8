// Which stretch of time is shown: moving it, the wheel, the buttons.

const SMALLEST = 1e-7; // of the whole
const GESTURE = 400; // ms: a wheel that turns on belongs to what it began over

// Moves the range, keeps it within the whole, and tells the kernel once the hand rests.
function makeZoom(model, state, repaint, signal) {
  const tellLater = makeTeller(model, 150, signal);
  const show = ([from, to]) => {
    const whole = state.whole[1] - state.whole[0];
    const span = Math.min(Math.max(to - from, whole * SMALLEST), whole);
    const begin = Math.min(Math.max(from, state.whole[0]), state.whole[1] - span);
    state.range = span === whole ? state.whole : [begin, begin + span];
    state.chosen = span === whole ? null : state.range; // the kernel's echo of an older one must not undo it
    model.set("zoom", span === whole ? [] : state.range);
    tellLater();
    repaint();
  };
  return {
    show,
    all: () => show(state.whole),
    by(share) { // to the right
      const [from, to] = state.range, shift = share * (to - from);
      show([from + shift, to + shift]);
    },

    // makes [from, to] of a bar seen: moves there if it is outside, and closer if it could not be told from a line
    reveal(start, end) {
      const [from, to] = state.range, seen = ((end - start) / (to - from)) * state.scales.width;
      if (seen >= 3 && start >= from && end <= to) return;
      const span = seen < 3 ? ((end - start) * state.scales.width) / 24 || to - from : to - from;
      show([(start + end - span) / 2, (start + end + span) / 2]);
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

function makeButton(text, title, act) {
  const button = element("button", "pipeline-button");
  Object.assign(button, { type: "button", textContent: text, title });
  button.setAttribute("aria-label", title.split(" (")[0]);
  button.addEventListener("click", act);
  return button;
}

function makeButtons(zoom) {
  return [
    makeButton("−", "Zoom out (key −; Ctrl and wheel, or the wheel alone after a click)", () => zoom.around(1 / 0.6)),
    makeButton("+", "Zoom in (key +; Ctrl and wheel, or the wheel alone after a click)", () => zoom.around(0.6)),
    makeButton("Fit", "Show all (key 0, or double click)", zoom.all),
  ];
}
