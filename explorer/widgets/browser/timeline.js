// The bars of a pipeline timeline, on a canvas inside the upper plot of a plotly figure.
//
// Plotly draws axes, legend, mode bar and the memory row, and keeps zoom and pan; this draws the bars at whatever
// stretch of time plotly shows. Columns come sorted by (lane, kind, start), so what is visible is found by bisection.

function makeState(model) {
  const style = model.get("look");
  const rgb = style.colors.map((color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)));
  const state = { style, rgb, hidden: [], pending: null, scales: null, raster: makeRaster(style.colors.length) };
  state.read = (name) => { state[name] = readBlock(model.get(name)); };
  state.readView = () => {
    const view = model.get("view");
    state.nRanks = view.n_ranks;
    state.whole = view.whole;
    state.pending = view.range; // plotly hears of it only after us
    state.pendingTop = view.top;
  };
  state.readLines = () => { state.lines = readLines(model.get("lines")); };
  state.settle = () => { state.messages = [state.predicted, state.measured].some((b) => hasMessages(b, style)); };
  ["predicted", "measured"].forEach(state.read);
  state.readLines();
  state.readView();
  state.settle();
  return state;
}

async function plotReady(graph, signal) {
  while (!(graph.on && graph._fullLayout && graph._fullLayout.xaxis && graph._fullLayout.xaxis._length)) {
    if (signal.aborted) return false;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return true;
}

// Tell the kernel which frame can be seen: after the next paint.
function acknowledge(model, el) {
  requestAnimationFrame(() => setTimeout(() => {
    const seq = model.get("seq");
    el.dataset.paintedSeq = seq;
    model.set("painted", seq);
    model.save_changes();
  }));
}

async function render({ model, el, host, signal }) {
  el.classList.add("pipeline-timeline");
  const graph = document.createElement("div");
  el.appendChild(graph);
  const figure = await host.getWidget(model.get("figure"));
  await figure.render({ el: graph, signal });
  if (!(await plotReady(graph, signal))) return;

  const [canvas, below] = ["bars", "lines"].map(() => document.createElement("canvas"));
  for (const each of [canvas, below]) each.className = "pipeline-canvas";
  const state = makeState(model);
  let queued = false;
  const repaint = () => { queued = false; paint(canvas, graph, state, el); paintLines(below, graph, state); };
  const soon = (queue) => { if (!queued) { queued = true; queue(repaint); } };

  const listen = (event, react) => {
    model.on(event, react);
    signal.addEventListener("abort", () => model.off(event, react));
  };
  for (const name of ["predicted", "measured"]) {
    listen(`change:${name}`, () => { state.read(name); state.settle(); soon(queueMicrotask); });
  }
  listen("change:lines", () => { state.readLines(); soon(queueMicrotask); });
  listen("change:view", () => { state.readView(); soon(queueMicrotask); });
  listen("change:seq", () => acknowledge(model, el));
  const speak = () => el.setAttribute("aria-label", model.get("label"));
  listen("change:label", speak);
  const dim = () => { el.dataset.stale = model.get("stale"); };
  listen("change:stale", dim);
  graph.on("plotly_relayouting", () => { state.pending = null; soon(requestAnimationFrame); });
  graph.on("plotly_afterplot", () => {
    state.pending = state.pendingTop = null;
    state.hidden = graph._fullData.map((trace) => trace.visible !== true);
    repaint();
  });

  el.setAttribute("role", "figure");
  speak();
  dim();
  addHover(graph, el, state, signal);
  addKeyboard(graph, el, state, signal);
  followSize(graph, el, signal);
  followTheme(model, signal);
  state.pending = state.pendingTop = null;
  repaint();
  acknowledge(model, el);
}

export default { render };
