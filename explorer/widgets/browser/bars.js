// Bars onto a canvas: rectangles with letters, or how much of each pixel column is covered.

const FAINT = 0.26; // opacity of a prediction under measured bars
const MOST_RECTANGLES = 12000;
const NARROWEST_RECTANGLE = 1.5; // pixels, on average; below, coverage of each pixel column says more

// ── drawing: rectangles with letters ─────────────────────────────────────────────────────────────────────────────

function drawRectangles(pen, block, scales, state, inset) {
  eachVisible(block, scales, state, (rank, kind, first, beyond) => {
    const [y, height] = scales.box(rank, state.style.thin[kind], inset);
    pen.fillStyle = state.style.colors[kind];
    pen.beginPath();
    for (let i = first; i < beyond; i++) {
      const left = Math.max(scales.x(block.start[i]), -2);
      const right = Math.min(scales.x(block.start[i] + block.duration[i]), scales.width + 2);
      if (right < 0) continue;
      const gap = right - left > 4 ? 1 : 0;
      pen.rect(left, y, Math.max(right - left - gap, 0.5), height);
    }
    pen.fill();
  });
}

function drawLetters(pen, block, scales, state, inset) {
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  eachVisible(block, scales, state, (rank, kind, first, beyond) => {
    if (state.style.thin[kind]) return;
    const [y, height] = scales.box(rank, false, inset);
    const size = Math.max(9, Math.min(13, height * 0.45));
    if (height < size) return;
    pen.font = `600 ${size}px system-ui, sans-serif`;
    pen.fillStyle = state.style.inks[kind];
    for (let i = first; i < beyond; i++) {
      const left = Math.max(scales.x(block.start[i]), 0);
      const right = Math.min(scales.x(block.start[i] + block.duration[i]), scales.width);
      const text = fittingText(state.style.letters[kind], block.micro_batch[i], (right - left - 4) / (0.62 * size));
      if (text) pen.fillText(text, (left + right - 1) / 2, y + height / 2 + 0.5);
    }
  });
}

// "F12" where there is room for it, else "F", else nothing.
function fittingText(letter, microBatch, room) {
  const full = microBatch === NO_MICRO_BATCH ? letter : letter + microBatch;
  if (full.length <= room) return full;
  return room >= 1 ? letter : "";
}

// ── drawing: coverage of each pixel column ───────────────────────────────────────────────────────────────────────

function addCoverage(covered, at, block, first, beyond, scales, ratio) {
  const width = Math.ceil(scales.width * ratio), perMs = scales.perMs * ratio;
  for (let i = first; i < beyond; i++) {
    let left = (block.start[i] - scales.from) * perMs, right = left + block.duration[i] * perMs;
    if (right <= 0) continue;
    left = Math.max(left, 0);
    right = Math.min(right, width);
    const from = left | 0, to = right | 0;
    if (from === to) { covered[at + from] += right - left; continue; }
    covered[at + from] += from + 1 - left;
    for (let x = from + 1; x < to; x++) covered[at + x] = 1;
    if (to < width) covered[at + to] += right - to;
  }
}

// One row of pixels: each column's kinds mixed by how much of it they cover.
function mixColumns(pixels, row, covered, kinds, rgb, width) {
  for (let x = 0; x < width; x++) {
    let red = 0, green = 0, blue = 0, sum = 0;
    for (const kind of kinds) {
      const share = covered[kind * width + x];
      if (!share) continue;
      sum += share; red += share * rgb[kind][0]; green += share * rgb[kind][1]; blue += share * rgb[kind][2];
    }
    if (!sum) continue;
    const alpha = Math.min(sum, 1) * 255;
    pixels[row + x] = (alpha << 24) | ((blue / sum) << 16) | ((green / sum) << 8) | (red / sum);
  }
}

function drawCoverage(pen, block, scales, state, ratio, inset) {
  const width = Math.ceil(scales.width * ratio), height = Math.ceil(scales.lanes.height * ratio);
  const { canvas, image, pixels, covered } = state.raster(width, height);
  pixels.fill(0);
  const groups = new Map(); // the kinds of each (rank, thin)
  eachVisible(block, scales, state, (rank, kind, first, beyond) => {
    const key = 2 * rank + Number(state.style.thin[kind]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push([kind, first, beyond]);
  });
  for (const [key, parts] of groups) {
    for (const [kind, first, beyond] of parts) {
      covered.fill(0, kind * width, (kind + 1) * width);
      addCoverage(covered, kind * width, block, first, beyond, scales, ratio);
    }
    const [y, tall] = scales.box(key >> 1, key & 1, inset);
    const top = Math.max(0, Math.round(y * ratio));
    const bottom = Math.min(height, Math.max(top + 1, Math.round((y + tall) * ratio)));
    mixColumns(pixels, top * width, covered, parts.map((part) => part[0]), state.rgb, width);
    for (let line = top + 1; line < bottom; line++) pixels.copyWithin(line * width, top * width, (top + 1) * width);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  pen.drawImage(canvas, 0, 0, width / ratio, height / ratio);
}

// Scratch memory for coverage, made anew only when the plot's size changes.
function makeRaster(nKinds) {
  let kept = null;
  return (width, height) => {
    if (!kept || kept.canvas.width !== width || kept.canvas.height !== height) {
      const canvas = document.createElement("canvas");
      canvas.width = width;
      canvas.height = height;
      const image = canvas.getContext("2d").createImageData(width, height);
      const covered = new Float32Array(width * nKinds);
      kept = { canvas, image, pixels: new Uint32Array(image.data.buffer), covered };
    }
    return kept;
  };
}

// ── both blocks, the prediction under what was measured ──────────────────────────────────────────────────────────

// Draws into a pen whose origin is the plot's; returns what it drew.
function drawBars(pen, scales, state, ratio) {
  const drawn = { predicted: 0, measured: 0, mode: "rectangles" };
  for (const name of ["predicted", "measured"]) {
    const block = state[name];
    if (!block) continue;
    pen.globalAlpha = name === "predicted" && state.measured ? FAINT : 1;
    const inset = name === "measured" ? 0.05 : 0;
    drawn[name] = eachVisible(block, scales, state, () => {});
    const pixels = (scales.width * state.nRanks) / drawn[name];
    if (drawn[name] > MOST_RECTANGLES || pixels < NARROWEST_RECTANGLE) {
      drawn.mode = "coverage";
      drawCoverage(pen, block, scales, state, ratio, inset);
    } else {
      drawRectangles(pen, block, scales, state, inset);
      if (pen.globalAlpha === 1) drawLetters(pen, block, scales, state, inset);
    }
  }
  pen.globalAlpha = 1;
  return drawn;
}
