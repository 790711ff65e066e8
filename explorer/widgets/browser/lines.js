// The memory row: a step line for each of a few ranks, the prediction faint under what was measured.

function readLines(packed) {
  const lines = { ranks: packed.ranks || [], unit: packed.unit || "", limit: packed.limit || null };
  for (const name of ["predicted", "measured"]) {
    const block = packed[name];
    lines[name] = block ? { n: block.n, ...readColumns(block, ["offset", "time", "level"]) } : null;
  }
  return lines;
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

function drawLines(pen, scales, state) {
  const { predicted, measured, limit } = state.lines;
  if (limit) drawLimit(pen, scales, limit, themeOf(state));
  for (const block of [predicted, measured]) {
    if (!block) continue;
    const faint = block === predicted && measured;
    // not dotted: dashes of a line with many steps take the browser longer than all else together
    pen.lineWidth = faint ? 1 : 1.8;
    pen.globalAlpha = faint ? 0.5 : 1;
    for (let place = 0; place < block.n; place++) {
      if (isHidden(state, "rank", place)) continue;
      pen.strokeStyle = state.style.lines[place % state.style.lines.length];
      drawSteps(pen, block, place, scales);
    }
  }
  pen.globalAlpha = 1;
  if (limit) nameLimit(pen, scales, limit, themeOf(state));
}

// What a device has: what lies above does not fit. The line is the theme's, for ranks have the colours.
function drawLimit(pen, scales, { level }, theme) {
  const y = Math.round(scales.y(level));
  pen.fillStyle = theme.text;
  pen.globalAlpha = 0.1;
  pen.fillRect(0, 0, scales.width, y);
  pen.globalAlpha = 1;
  pen.fillRect(0, y - 1, scales.width, 2);
}

function nameLimit(pen, scales, { level, text }, theme) {
  const y = Math.round(scales.y(level)), place = [scales.width - 6, y < TALLEST_TICK ? y + 9 : y - 8];
  pen.font = FONT;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.lineWidth = 3;
  pen.strokeStyle = theme.paper;
  pen.fillStyle = theme.text;
  pen.strokeText(text, ...place);
  pen.fillText(text, ...place);
}

// What each line says at a place of the lower plot, as text; "" outside of all.
function levelsAt(state, x) {
  const time = state.scales.time(x), { measured, predicted, ranks, unit, limit } = state.lines;
  const block = measured || predicted;
  if (!block) return "";
  const texts = [];
  for (let place = 0; place < block.n; place++) {
    const begin = block.offset[place];
    const i = bisect(block.time, begin, block.offset[place + 1], time) - 1;
    if (i >= begin && !isHidden(state, "rank", place)) {
      texts.push(`rank ${ranks[place]}: ${Number(block.level[i].toPrecision(4))}`);
    }
  }
  if (limit && texts.length) texts.push(limit.text);
  return texts.length ? [`${unit} at ${inMs(time)}`, ...texts].join("\n") : "";
}
