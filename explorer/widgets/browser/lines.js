// The memory row: a step line for each of a few ranks, the prediction dotted under what was measured.

function readLines(packed) {
  const lines = { ranks: packed.ranks || [], unit: packed.unit || "" };
  for (const name of ["predicted", "measured"]) {
    const block = packed[name];
    lines[name] = block ? { n: block.n, ...readColumns(block, ["offset", "time", "level"]) } : null;
  }
  return lines;
}

// Where times and levels are in the lower plot.
function lineScales(graph, state) {
  const { xaxis2: xaxis, yaxis2: yaxis } = graph._fullLayout;
  const top = Number(yaxis.range[1]);
  const { from, perMs } = state.scales;
  return {
    left: xaxis._offset, top: yaxis._offset, width: xaxis._length, height: yaxis._length,
    x(time) { return (time - from) * perMs; },
    y(level) { return yaxis._length * (1 - level / top); },
  };
}

function isHidden(state, place) {
  return state.hidden[state.style.firstLine + place] === true;
}

function drawSteps(pen, block, place, scales) {
  const begin = block.offset[place], end = block.offset[place + 1];
  if (begin === end) return;
  pen.beginPath();
  pen.moveTo(scales.x(block.time[begin]), scales.y(block.level[begin]));
  for (let i = begin + 1; i < end; i++) {
    const x = scales.x(block.time[i]);
    pen.lineTo(x, scales.y(block.level[i - 1]));
    pen.lineTo(x, scales.y(block.level[i]));
  }
  pen.stroke();
}

function paintLines(canvas, graph, state) {
  const scales = (state.lineScales = lineScales(graph, state));
  const pen = cleanPen(canvas, graph, scales, window.devicePixelRatio || 1);
  const { predicted, measured } = state.lines;
  for (const block of [predicted, measured]) {
    if (!block) continue;
    const faint = block === predicted && measured;
    pen.setLineDash(faint ? [2, 3] : []);
    pen.lineWidth = faint ? 1.2 : 1.8;
    pen.globalAlpha = faint ? 0.75 : 1;
    for (let place = 0; place < block.n; place++) {
      if (isHidden(state, place)) continue;
      pen.strokeStyle = state.style.lines[place % state.style.lines.length];
      drawSteps(pen, block, place, scales);
    }
  }
}

// What each line says at a place of the lower plot, as text; "" outside of all.
function levelsAt(state, x) {
  const time = state.scales.time(x), { measured, predicted, ranks, unit } = state.lines;
  const block = measured || predicted;
  if (!block) return "";
  const texts = [];
  for (let place = 0; place < block.n; place++) {
    const begin = block.offset[place];
    const i = bisect(block.time, begin, block.offset[place + 1], time) - 1;
    if (i >= begin && !isHidden(state, place)) texts.push(`rank ${ranks[place]}: ${Number(block.level[i].toPrecision(4))}`);
  }
  return texts.length ? [`${unit} at ${inMs(time)}`, ...texts].join("\n") : "";
}
