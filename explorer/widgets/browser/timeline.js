// The bars of a pipeline timeline and the lines of its memory row, on canvases inside the two plots of a plotly figure.
//
// Plotly draws axes, legends and mode bar, and keeps zoom and pan; this draws the rest at whatever stretch of time
// plotly shows. Columns come sorted by (lane, kind, start), so what is visible is found by bisection.

function makeState(model) {
  const style = model.get("look");
  const rgb = style.colors.map((color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)));
  return { style, rgb, hidden: [], applied: {}, sent: {}, scales: null, raster: makeRaster(style.colors.length) };
}

// Takes over what of the frame is new; a column that was not sent again is the same object.
function readFrame(model, state) {
  const view = model.get("view");
  state.nRanks = view.n_ranks;
  state.whole = view.whole;
  for (const [name, read] of [["predicted", readBlock], ["measured", readBlock], ["lines", readLines]]) {
    const packed = model.get(name);
    if (state.sent[name] === packed) continue;
    state.sent[name] = packed;
    state[name] = read(packed);
  }
  state.messages = [state.predicted, state.measured].some((block) => hasMessages(block, state.style));
}

// Tell the kernel which frame can be seen: after the next paint.
function acknowledge(model, el, seq) {
  requestAnimationFrame(() => setTimeout(() => {
    el.dataset.paintedSeq = seq;
    model.set("painted", seq);
    model.save_changes();
  }));
}

// Shows each frame, axes and bars in one paint, and paints again when plotly moves.
function makeFrames(graph, el, model, state, signal) {
  const [bars, lines] = ["bars", "lines"].map(() => document.createElement("canvas"));
  for (const each of [bars, lines]) each.className = "pipeline-canvas";
  const quietly = makeQuiet(graph);
  let moving = 0, queued = false;
  const repaint = () => { queued = false; paint(bars, graph, state, el); paintLines(lines, graph, state); };
  graph.on("plotly_relayouting", () => {
    if (!queued) requestAnimationFrame(repaint);
    queued = true;
  });
  graph.on("plotly_afterplot", () => {
    state.hidden = graph._fullData.map((trace) => trace.visible !== true);
    if (!moving) repaint();
  });
  return async () => {
    const seq = model.get("seq");
    readFrame(model, state);
    moving += 1;
    await quietly(() => applyView(graph, model, state)); // as a rule without leaving this task: one paint shows all
    moving -= 1;
    if (signal.aborted) return;
    repaint();
    acknowledge(model, el, seq);
  };
}

async function render({ model, el, host, signal }) {
  el.classList.add("pipeline-timeline");
  const graph = document.createElement("div");
  el.appendChild(graph);
  const ready = figureReady(graph, signal);
  const figure = await host.getWidget(model.get("figure"));
  await figure.render({ el: graph, signal });
  await ready;
  if (signal.aborted) return;

  const state = makeState(model);
  const show = makeFrames(graph, el, model, state, signal);
  const listen = (event, react) => {
    model.on(event, react);
    signal.addEventListener("abort", () => model.off(event, react));
    react();
  };
  listen("change:seq", show);
  listen("change:label", () => el.setAttribute("aria-label", model.get("label")));
  listen("change:stale", () => { el.dataset.stale = model.get("stale"); });

  el.setAttribute("role", "figure");
  followZoom(graph, model);
  addHover(graph, el, state, signal);
  addKeyboard(graph, el, state, signal);
  followSize(graph, el, signal);
  followTheme(model, signal);
}

export default { render };
