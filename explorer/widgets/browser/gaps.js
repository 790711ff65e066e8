// Idle time, coloured by its cause: a tint with the cause's stripes, and its letter where there is room.

// Columns come sorted by rank, then start: `offset` says where each rank begins.
function readGaps(packed) {
  if (!packed || !packed.n) return null;
  const columns = readColumns(packed, ["offset", "start", "end", "cause"]);
  return { n: packed.n, sentences: packed.sentences, causes: packed.causes, ...columns };
}

// Places of the rank's gaps in sight, [first, beyond).
function gapsInSight(gaps, rank, from, to) {
  const begin = gaps.offset[rank], end = gaps.offset[rank + 1];
  return [bisect(gaps.end, begin, end, from), bisect(gaps.start, begin, end, to)];
}

function drawGaps(pen, scales, state, theme) {
  const { gaps } = state;
  if (!gaps) return 0;
  let drawn = 0;
  pen.globalAlpha = state.found ? FADED_GAP : 1;
  for (let rank = 0; rank < state.nRanks; rank++) {
    const [first, beyond] = gapsInSight(gaps, rank, scales.from, scales.to), [y, height] = scales.box(rank, false, 0);
    for (let i = first, last = -1; i < beyond; i++) {
      const cause = gaps.causes[gaps.cause[i]];
      if (isHidden(state, "cause", gaps.cause[i])) continue;
      const left = Math.max(scales.x(gaps.start[i]), -1), right = Math.min(scales.x(gaps.end[i]), scales.width + 1);
      if (right - left < 0.5 && right < last + 0.5) continue; // nothing to see beside the one before
      last = right;
      drawn += 1;
      pen.fillStyle = right - left > 6 ? stripes(pen, cause) : cause.color;
      pen.fillRect(left, y, Math.max(right - left, 0.5), height);
      if (right - left > 14 && height > 11) drawCauseLetter(pen, cause, (left + right) / 2, y + height / 2, theme);
    }
  }
  pen.globalAlpha = 1;
  return drawn;
}

const FADED_GAP = 0.4; // while bars stand out
const TILES = new Map();
const PATTERNS = new Map();

// Lines at the angle of the cause on a fainter ground of its colour.
function tileOf({ color, pattern }) {
  const key = color + pattern;
  if (TILES.has(key)) return TILES.get(key);
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const on = tile.getContext("2d");
  on.fillStyle = color + "40";
  on.fillRect(0, 0, 8, 8);
  on.strokeStyle = color;
  on.lineWidth = 1.4;
  on.beginPath();
  for (const [fromX, fromY, toX, toY] of LINES[pattern]) { on.moveTo(fromX, fromY); on.lineTo(toX, toY); }
  on.stroke();
  TILES.set(key, tile);
  return tile;
}

function stripes(pen, cause) {
  const key = cause.color + cause.pattern;
  if (pen instanceof SvgPen) return cause.color + "70";
  if (!PATTERNS.has(key)) PATTERNS.set(key, pen.createPattern(tileOf(cause), "repeat"));
  return PATTERNS.get(key);
}

const LINES = {
  "/": [[-2, 10, 10, -2], [-2, 2, 2, -2], [6, 10, 10, 6]], "\\": [[-2, -2, 10, 10], [6, -2, 10, 2], [-2, 6, 2, 10]],
  "-": [[0, 4, 8, 4]], "|": [[4, 0, 4, 8]], "+": [[0, 4, 8, 4], [4, 0, 4, 8]], x: [[0, 0, 8, 8], [8, 0, 0, 8]], ".": [[3, 4, 5, 4]], "": [],
};

function drawCauseLetter(pen, { letter }, x, y, theme) {
  pen.font = "600 11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineWidth = 3;
  pen.strokeStyle = theme.idle;
  pen.strokeText(letter, x, y + 0.5);
  pen.fillStyle = theme.text;
  pen.fillText(letter, x, y + 0.5);
}

// Place of the gap of a rank at this time, −1 if there is none.
function gapAt({ gaps, nRanks }, rank, time) {
  if (!gaps || rank < 0 || rank >= nRanks) return -1;
  const begin = gaps.offset[rank];
  const i = bisect(gaps.start, begin, gaps.offset[rank + 1], time * (1 + 1e-9) + 1e-12) - 1;
  return i >= begin && gaps.end[i] >= time ? i : -1;
}

// Why the rank is idle at this time, "" if it is not, or nobody knows yet.
function gapText(state, rank, time) {
  const i = gapAt(state, rank, time);
  return i < 0 ? "" : sentenceOf(state, i);
}

// Of many gaps the sentences stay with the kernel until one is asked for.
function sentenceOf({ gaps, ask }, i) {
  if (gaps.sentences[i] === undefined) {
    gaps.sentences[i] = "";
    ask({ sentence: i });
  }
  return gaps.sentences[i];
}

function describeGap(state, rank, time) {
  const { gaps } = state, i = gapAt(state, rank, time);
  if (i < 0) return "";
  const { letter, title } = gaps.causes[gaps.cause[i]];
  const when = `rank ${rank} · ${inMs(gaps.end[i] - gaps.start[i])} from ${inMs(gaps.start[i])}`;
  return [`${letter}  idle: ${title}`, when, sentenceOf(state, i)].filter(Boolean).join("\n");
}

function causeEntries(state) {
  const { gaps } = state;
  if (!gaps) return [];
  return gaps.causes.map((cause, place) => {
    const { letter, title, color } = cause;
    return { place, text: `${letter}  idle: ${title}`, color, tile: tileOf(cause).toDataURL() };
  });
}
