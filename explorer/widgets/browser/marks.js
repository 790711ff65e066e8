// What is to be said of single moments, such as a fault that was put there: a cross on its rank, and its words.

const REACH = 9; // pixels from a mark within which the pointer means it

// Half the width of a cross, as large as the lane has room for.
const crossSize = (scales) => Math.min(Math.max(scales.lane * 0.14, 3), 6);

// Where a mark is, from the corner of the lanes.
function markPlace({ rank, time }, scales) {
  const [y, height] = scales.box(rank, false, 0);
  return [scales.x(time), y + height / 2];
}

const shownMarks = (state) => (isHidden(state, "mark", 0) ? [] : state.marks.filter(({ rank }) => rank < state.nRanks));

// Draws those in sight; returns how many.
function drawMarks(pen, scales, state, theme) {
  const size = crossSize(scales);
  let drawn = 0;
  for (const mark of shownMarks(state)) {
    const [x, y] = markPlace(mark, scales);
    if (x < -size || x > scales.width + size) continue;
    drawCross(pen, x, y, size, theme);
    drawn += 1;
  }
  return drawn;
}

// Seen on any bar: the text's colour on the paper's.
function drawCross(pen, x, y, size, theme) {
  for (const [color, width, by] of [[theme.paper, 5.5, 1.2], [theme.text, 2.5, 0]]) {
    const half = size + by;
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(x - half, y - half);
    pen.lineTo(x + half, y + half);
    pen.moveTo(x - half, y + half);
    pen.lineTo(x + half, y - half);
    pen.stroke();
  }
}

const markText = ({ rank, time, text }) => `✕  ${text}\nrank ${rank} · at ${inMs(time)}`;

// Those within reach of a place on the lanes.
function marksNear(state, x, y) {
  return shownMarks(state).filter((mark) => {
    const [atX, atY] = markPlace(mark, state.scales);
    return Math.abs(atX - x) <= REACH && Math.abs(atY - y) <= REACH;
  });
}

// Those within a bar of the run that is drawn, its start included.
function marksIn(state, { block, i, rank }) {
  if (block !== shownBlock(state)) return [];
  const tiny = (state.whole[1] - state.whole[0]) * 1e-7; // columns may be short
  const from = block.start[i] - tiny, to = block.start[i] + block.duration[i] - tiny;
  return shownMarks(state).filter(({ rank: other, time }) => other === rank && time >= from && time < to);
}

// A bar in words, with what is to be said of moments within it.
function describeMarked(state, bar) {
  return [describe(bar, state.style), ...marksIn(state, bar).map(({ text }) => `✕  ${text}`)].join("\n");
}

function markEntries(state) {
  if (!state.marks.length) return [];
  return [{ place: 0, text: "fault", cross: true }];
}
