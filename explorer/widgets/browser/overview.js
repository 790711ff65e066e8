// The whole run, small, below the plots; on it, what is shown above, to be moved and resized.

const STRIP = 34; // pixels high
const SETTLED = 200; // ms: the strip is drawn once the picture has come to rest, and never holds it up
const OVERDUE = 1200; // ms: nor does it lag further behind one that does not

function stripScales(state, width) {
  const [from, to] = state.whole, lane = STRIP / state.nRanks;
  return {
    from, to, width, perMs: width / (to - from), lane, lanes: { left: 0, top: 0, width, height: STRIP },
    x(time) { return (time - from) * this.perMs; },
    box: (rank, thin) => (thin ? [0, 0] : [rank * lane, lane]),
  };
}

// Whether it could: the page may hide it, as JupyterLab does for a change of theme.
function paintStrip(canvas, state) {
  const block = shownBlock(state), width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  if (!width || !block) return false;
  const pen = cleanPen(canvas, { width, height: STRIP }, ratio, themeOf(state).idle), scales = stripScales(state, width);
  drawCoverage(pen, block, scales, { ...state, raster: state.stripRaster }, ratio, 0);
  return true;
}

function makeOverview(state, zoom, signal) {
  const canvas = element("canvas", "pipeline-strip"), brush = element("div", "pipeline-brush");
  const box = element("div", "pipeline-overview", canvas, brush);
  box.setAttribute("aria-hidden", "true"); // the keys do the same
  for (const side of ["from", "to"]) brush.append(Object.assign(element("i", "pipeline-handle"), { title: "Drag to show more or less" }));
  [...brush.children].forEach((handle, n) => { handle.dataset.side = n; });
  let drawn = null, waiting = 0, since = 0;
  // what the strip shows; a zoom changes none of it, and asking the page how wide it is would lay it out at once
  const key = () => [shownBlock(state), state.whole.join(), [...state.hidden].join(), isDark(), state.pixels.width];
  const update = () => {
    const whole = state.whole[1] - state.whole[0], [from, to] = state.range;
    brush.style.left = `${((from - state.whole[0]) / whole) * 100}%`;
    brush.style.width = `${((to - from) / whole) * 100}%`;
    if (drawn && key().every((part, n) => part === drawn[n])) return;
    const now = performance.now();
    if (!waiting) since = now;
    clearTimeout(waiting);
    waiting = setTimeout(() => { waiting = 0; if (paintStrip(canvas, state)) drawn = key(); }, Math.min(SETTLED, since + OVERDUE - now));
  };
  signal.addEventListener("abort", () => clearTimeout(waiting));
  addBrushing(box, brush, state, zoom, signal);
  return { box, update };
}

// Drag a handle to resize, the window to move, elsewhere to choose another window.
function addBrushing(box, brush, state, zoom, signal) {
  let drag = null;
  const timeOf = (event) => {
    const { left, width } = box.getBoundingClientRect(), [from, to] = state.whole;
    return from + ((event.clientX - left) / width) * (to - from);
  };
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !shownBlock(state)) return;
    event.preventDefault();
    box.setPointerCapture(event.pointerId);
    const at = timeOf(event), side = event.target.dataset.side, [from, to] = state.range;
    if (side !== undefined) drag = { fixed: Number(side) ? from : to };
    else if (at > from && at < to && state.range !== state.whole) drag = { offset: at - from, span: to - from };
    else drag = { fixed: at };
  }, { signal });
  box.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const at = timeOf(event);
    if (drag.span) return zoom.show([at - drag.offset, at - drag.offset + drag.span]);
    zoom.show([Math.max(Math.min(drag.fixed, at), state.whole[0]), Math.min(Math.max(drag.fixed, at), state.whole[1])]);
  }, { signal });
  for (const end of ["pointerup", "pointercancel"]) box.addEventListener(end, () => { drag = null; }, { signal });
  box.addEventListener("dblclick", zoom.all, { signal });
}
