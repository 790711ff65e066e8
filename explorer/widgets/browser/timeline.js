// A pipeline timeline and its memory row on one canvas, with the numbers above and legends around it.
//
// Columns come sorted by (lane, kind, start), so what is visible is found by bisection, at whatever stretch of time.

function makeState(model) {
  const style = model.get("look");
  const rgb = style.colors.map((color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)));
  return { style, rgb, hidden: new Set(model.get("hidden")), sent: {}, pixels: null, scales: null, raster: makeRaster(style.colors.length) };
}

// Takes over what of the frame is new; a column that was not sent again is the same object.
function readFrame(model, state) {
  const { n_ranks: nRanks, whole, top, title, kinds } = model.get("view"), zoom = model.get("zoom");
  Object.assign(state, { nRanks, whole, top, title, kinds, range: zoom.length ? state.chosen || zoom : whole });
  for (const [name, read] of [["predicted", readBlock], ["measured", readBlock], ["lines", readLines]]) {
    const packed = model.get(name);
    if (state.sent[name] === packed) continue;
    state.sent[name] = packed;
    state[name] = read(packed);
  }
  state.messages = [state.predicted, state.measured].some((block) => hasMessages(block, state.style));
}

const REST = 250; // ms between two answers while a run streams: to each, JupyterLab shows the kernel busy, then idle

// Tells the kernel which frame can be seen: after the next paint, or with others of a run a little later.
function makeAcknowledge(model, el, signal) {
  let last = -Infinity, waiting = 0;
  const tell = () => {
    clearTimeout(waiting);
    waiting = 0;
    last = performance.now();
    model.set("painted", Number(el.dataset.paintedSeq));
    model.save_changes();
  };
  signal.addEventListener("abort", () => clearTimeout(waiting));
  return (seq, live) => requestAnimationFrame(() => setTimeout(() => {
    if (signal.aborted) return;
    el.dataset.paintedSeq = seq;
    const rest = live ? last + REST - performance.now() : 0;
    if (rest <= 0) tell();
    else if (!waiting) waiting = setTimeout(tell, rest);
  }));
}

// Paints at most once for each frame of the screen.
function makeRepaint(canvas, state, el) {
  let queued = false;
  return () => {
    if (!queued) requestAnimationFrame(() => { queued = false; paint(canvas, state, el); });
    queued = true;
  };
}

// The size when it was last seen stays while the page hides it, as JupyterLab does for a change of theme.
function followSize(canvas, state, el, signal) {
  const observer = new ResizeObserver(([{ contentRect: { width, height } }]) => {
    if (!width) return;
    state.pixels = { width, height };
    paint(canvas, state, el);
  });
  observer.observe(canvas);
  signal.addEventListener("abort", () => observer.disconnect());
}

function followTheme(repaint, signal) {
  const observer = new MutationObserver(repaint);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  signal.addEventListener("abort", () => observer.disconnect());
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...children);
  return made;
}

function render({ model, el, signal }) {
  const state = makeState(model);
  const canvas = element("canvas", "pipeline-canvas"), numbers = element("div", "pipeline-numbers"), note = element("div", "pipeline-note");
  const repaint = makeRepaint(canvas, state, el), acknowledge = makeAcknowledge(model, el, signal);
  const zoom = makeZoom(model, state, repaint, signal);
  const toggled = () => {
    for (const [legend, entries] of legends) legend.update(entries(state));
    model.set("hidden", [...state.hidden]);
    model.save_changes();
    repaint();
  };
  const legends = [[makeLegend("kind", state, toggled), kindEntries], [makeLegend("rank", state, toggled), rankEntries]];
  const [[kinds], [ranks]] = legends;
  el.classList.add("pipeline-timeline");
  el.setAttribute("role", "figure");
  const head = element("div", "pipeline-head", kinds.row, makeButtons(zoom));
  el.append(numbers, head, element("div", "pipeline-plots", canvas), element("div", "pipeline-foot", note, ranks.row));

  const show = () => {
    readFrame(model, state);
    showNumbers(numbers, model.get("numbers"));
    note.textContent = model.get("note");
    for (const [legend, entries] of legends) legend.update(entries(state));
    paint(canvas, state, el);
    acknowledge(model.get("seq"), model.get("view").live);
  };
  const listen = (event, react) => {
    model.on(event, react);
    signal.addEventListener("abort", () => model.off(event, react));
    react();
  };
  listen("change:label", () => el.setAttribute("aria-label", model.get("label")));
  listen("change:stale", () => { el.dataset.stale = model.get("stale"); });
  listen("change:seq", show);
  addHover(canvas, state, signal);
  addDrag(canvas, state, zoom, signal);
  addWheel(canvas, el, state, zoom, signal);
  addKeyboard(el, zoom, signal);
  followSize(canvas, state, el, signal);
  followTheme(repaint, signal);
}

export default { render };
