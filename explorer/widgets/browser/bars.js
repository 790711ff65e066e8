// Bars onto a canvas: rectangles with letters, or how much of each pixel column they cover.

const FAINT = { light: 0.26, dark: 0.4 }; // opacity of a prediction under measured bars
const FADED = 0.22; // while others stand out
const DARKEST = 0.42; // of the last of a rank's stages
const MOST_RECTANGLES = 6000;
const NARROWEST_RECTANGLE = 2.5; // pixels, on average; below, coverage of each pixel column says more

// ── drawing: rectangles with letters ─────────────────────────────────────────────────────────────────────────────

function drawRectangles(pen, block, scales, state, inset) {
  const { others, above } = sharedLanes(state, block);
  eachVisible(block, scales, state, (rank, kind, first, beyond) => {
    const [y, height] = scales.box(rank, state.style.thin[kind], inset);
    pen.fillStyle = state.style.colors[kind];
    pen.beginPath();
    for (let i = first; i < beyond; i++) {
      const left = Math.max(scales.x(block.start[i]), -2);
      const right = Math.min(scales.x(block.start[i] + block.duration[i]), scales.width + 2);
      if (right < 0) continue;
      const gap = right - left > 4 ? 1 : 0, width = Math.max(right - left - gap, 0.5);
      const part = height / (others[i] + 1);
      pen.rect(left, y + above[i] * part, width, part);
    }
    pen.fill();
  });
}

// Which of its rank's stages each stage is, from 0; null where each rank has but one.
function furtherStages(home) {
  if (!home.length) return null;
  const seen = new Map(), nth = home.map((rank) => { const n = seen.get(rank) || 0; seen.set(rank, n + 1); return n; });
  return { home, nth, most: Math.max(...seen.values()) };
}

// A rank's further stages are darker, and those of the other direction: else two of its bars bear the same words.
function drawFurther(pen, block, scales, state, inset) {
  const { home, nth, most } = state.further, { others, above } = sharedLanes(state, block);
  eachVisible(block, scales, state, (rank, kind, first, beyond) => {
    if (state.style.thin[kind]) return;
    const [y, height] = scales.box(rank, false, inset);
    for (let i = first; i < beyond; i++) {
      const stage = block.stage[i], level = nth[stage] + (home[stage] === rank ? 0 : 1);
      if (!level) continue;
      const left = Math.max(scales.x(block.start[i]), -2);
      const right = Math.min(scales.x(block.start[i] + block.duration[i]), scales.width + 2);
      const gap = right - left > 4 ? 1 : 0, part = height / (others[i] + 1);
      pen.fillStyle = `rgba(0, 0, 0, ${(DARKEST * Math.min(level / Math.max(most - 1, 1), 1)).toFixed(2)})`;
      pen.fillRect(left, y + above[i] * part, Math.max(right - left - gap, 0.5), part);
    }
  });
}

function drawLetters(pen, block, scales, state, inset) {
  const { style } = state, { others, above } = sharedLanes(state, block);
  let font = 0; // size of the one that the pen has: telling it takes as long as drawing a letter
  eachVisible(block, scales, state, (rank, kind, first, beyond) => {
    if (style.thin[kind]) return;
    const [y, height] = scales.box(rank, false, inset);
    inkFor(pen, style, kind);
    for (let i = first; i < beyond; i++) {
      const left = Math.max(scales.x(block.start[i]), 0);
      const right = Math.min(scales.x(block.start[i] + block.duration[i]), scales.width);
      const part = height / (others[i] + 1), size = letterSize(part), text = letterOf(style, block, i, kind, right - left, part);
      if (!text) continue;
      if (font !== size) pen.font = letterFont((font = size));
      pen.fillText(text, (left + right - 1) / 2, y + (above[i] + 0.5) * part + 0.5);
    }
  });
}

const letterSize = (height) => Math.max(9, Math.min(13, height * 0.45));
const letterFont = (size) => `600 ${size}px system-ui, sans-serif`;

function inkFor(pen, style, kind) {
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = style.inks[kind];
}

// What is written on a bar of so many pixels.
function letterOf(style, block, i, kind, width, height) {
  const size = letterSize(height);
  return height < size ? "" : fittingText(style.letters[kind], block.micro_batch[i], (width - 4) / (0.62 * size));
}

// "F12" where there is room for it, else "F", else nothing.
function fittingText(letter, microBatch, room) {
  const full = microBatch === NO_MICRO_BATCH ? letter : letter + microBatch;
  if (full.length <= room) return full;
  return room >= 1 ? letter : "";
}

// ── both blocks, the prediction under what was measured ──────────────────────────────────────────────────────────

// Draws into a pen whose origin is the plot's; returns what it drew.
function drawBars(pen, scales, state, ratio) {
  const drawn = { predicted: 0, measured: 0, mode: "rectangles" };
  for (const name of ["predicted", "measured"]) {
    const block = state[name];
    if (!block) continue;
    pen.globalAlpha = (name === "predicted" && state.measured ? FAINT[isDark() ? "dark" : "light"] : 1) * (state.found ? FADED : 1);
    const inset = name === "measured" ? 0.05 : 0;
    drawn[name] = eachVisible(block, scales, state, () => {});
    const pixels = (scales.width * state.nRanks) / drawn[name];
    if (drawn[name] > MOST_RECTANGLES || pixels < NARROWEST_RECTANGLE) {
      drawn.mode = "coverage";
      drawCoverage(pen, block, scales, state, ratio, inset);
    } else {
      drawRectangles(pen, block, scales, state, inset);
      if (state.further) drawFurther(pen, block, scales, state, inset);
      if (pen.globalAlpha === 1 || state.found) drawLetters(pen, block, scales, state, inset);
    }
  }
  pen.globalAlpha = 1;
  return drawn;
}
