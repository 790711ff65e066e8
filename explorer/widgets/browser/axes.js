// Moving plotly's axes and legends with each frame, and hearing how the reader moves them.
//
// Done here and not through the FigureWidget: its messages carry a mark that plotly takes for an unknown attribute, for
// which it draws everything anew, ten times slower than moving an axis; and it answers each with its whole layout.

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Plotly has laid the figure out, and the FigureWidget listens to it.
function figureReady(graph, signal) {
  return new Promise((resolve) => {
    document.addEventListener("plotlywidget-after-render", ({ detail }) => {
      if (detail.element === graph) resolve();
    }, { signal });
    signal.addEventListener("abort", resolve);
  });
}

// Lets `change` pass without a word to the FigureWidget, which would tell Python what Python just told us.
function makeQuiet(graph) {
  const emit = graph.emit, kept = ["plotly_relayout", "plotly_update"];
  let changes = 0;
  graph.emit = (name, data) => (changes && kept.includes(name) ? undefined : emit.call(graph, name, data));
  return async (change) => {
    changes += 1;
    try {
      await change();
    } finally {
      changes -= 1;
    }
  };
}

// Where the reader has zoomed to, else all of it.
function wantedRange(model) {
  const zoom = model.get("zoom");
  return zoom.length ? zoom : model.get("view").whole;
}

// What of the view plotly does not show yet: attributes of the layout, and of the legends.
function outstanding(graph, model, state) {
  const view = model.get("view"), range = wantedRange(model), legends = {};
  const layout = Object.fromEntries(
    Object.entries(view.axes).filter(([name, value]) => !same(state.applied[name], value)),
  );
  // both, for of two axes that match each other the one left out may win when plotly draws everything anew
  const axes = ["xaxis", "xaxis2"];
  if (!axes.every((axis) => same(graph._fullLayout[axis].range.map(Number), range))) {
    for (const axis of axes) layout[`${axis}.range`] = range;
  }
  for (const name of ["name", "showlegend"]) {
    if (!same(state.applied[name], view.legends[name])) legends[name] = view.legends[name];
  }
  state.applied = { ...view.axes, ...view.legends };
  return { layout, legends };
}

// Brings axes and legends to the view in at most one redraw of plotly's.
async function applyView(graph, model, state) {
  const { layout, legends } = outstanding(graph, model, state);
  setReset(graph, model.get("view").whole);
  if (Object.keys(legends).length) {
    await window.Plotly.update(graph, legends, layout, [...model.get("view").legends.name.keys()]);
  } else if (Object.keys(layout).length) {
    await window.Plotly.relayout(graph, layout);
  }
}

// Plotly's button and double click go back to the stretch that it drew first, unless told of another.
function setReset(graph, [from, to]) {
  for (const axis of [graph._fullLayout.xaxis, graph._fullLayout.xaxis2]) {
    axis._rangeInitial0 = from;
    axis._rangeInitial1 = to;
  }
}

// Keeps what the reader looks at, over frames and reloads.
function followZoom(graph, model) {
  const note = () => {
    const range = graph._fullLayout.xaxis.range.map(Number);
    model.set("zoom", same(range, model.get("view").whole) ? [] : range);
  };
  graph.on("plotly_relayouting", note);
  graph.on("plotly_relayout", (change) => {
    if (!Object.keys(change).some((name) => name.startsWith("xaxis"))) return;
    note();
    model.save_changes();
  });
}
