// The memory row: a step line for each of a few ranks, the prediction faint under what was measured.

const LINE = 1.8; // pixels thick
const DENSE = 2; // pixels for each step, below which a line is more of a band

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

// Whether a line has nearly as many steps in sight as pixels.
function isDense({ offset, time }, place, { from, to, width }) {
  const begin = bisect(time, offset[place], offset[place + 1], from);
  return DENSE * (bisect(time, begin, offset[place + 1], to) - begin) > width;
}

// A dense line, as what it covers of each pixel column: to stroke it takes the page longer than all bars.
function coverSteps(pixels, width, height, block, place, scales, ratio, color) {
  const begin = block.offset[place], end = block.offset[place + 1], thick = Math.max(1, Math.round(LINE * ratio));
  if (begin === end) return;
  const pixelOf = (i) => Math.floor(scales.x(block.time[i]) * ratio);
  let i = Math.max(bisect(block.time, begin, end, scales.from) - 1, begin);
  const last = Math.min(pixelOf(end - 1), width - 1);
  for (let x = Math.max(pixelOf(i), 0); x <= last; x++) {
    let low = block.level[i], high = low;
    while (i + 1 < end && pixelOf(i + 1) <= x) {
      const level = block.level[++i];
      if (level < low) low = level;
      else if (level > high) high = level;
    }
    const top = Math.max(Math.round(scales.y(high) * ratio - thick / 2), 0);
    const bottom = Math.min(Math.round(scales.y(low) * ratio + thick / 2), height);
    for (let y = top; y < bottom; y++) pixels[y * width + x] = color;
  }
}

// The lines of a block; dense ones lie above the others.
function drawBlock(pen, block, scales, state, ratio) {
  const width = Math.ceil(scales.width * ratio), height = Math.ceil(scales.levels.height * ratio);
  const { canvas, image, pixels } = state.lineRaster(width, height), { lines } = state.style;
  let covered = false;
  for (let place = 0; place < block.n; place++) {
    const color = place % lines.length;
    if (isHidden(state, "rank", place)) continue;
    if (!isDense(block, place, scales)) {
      pen.strokeStyle = lines[color];
      drawSteps(pen, block, place, scales);
      continue;
    }
    if (!covered) pixels.fill(0);
    covered = true;
    coverSteps(pixels, width, height, block, place, scales, ratio, state.lineColors[color]);
  }
  if (!covered) return;
  canvas.getContext("2d").putImageData(image, 0, 0);
  pen.drawImage(canvas, 0, 0, width / ratio, height / ratio);
}

function drawLines(pen, scales, state, ratio) {
  const { predicted, measured, limit } = state.lines;
  if (limit) drawLimit(pen, scales, limit, themeOf(state));
  for (const block of [predicted, measured]) {
    if (!block) continue;
    const faint = block === predicted && measured;
    // not dotted: dashes of a line with many steps take the browser longer than all else together
    pen.lineWidth = faint ? 1 : LINE;
    pen.globalAlpha = faint ? 0.5 : 1;
    drawBlock(pen, block, scales, state, ratio);
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
