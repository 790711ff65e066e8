// Where lanes, levels and times are on the canvas.

const MARGIN = { left: 64, right: 12, top: 7, bottom: 36 };
const GAP = 14; // between the two plots
const LANES_SHARE = 0.7; // of the height, for the lanes of the ranks; the rest is the memory row's

// `pixels` is the size of the canvas as the page sees it; times in ms.
function makeScales(state, pixels) {
  const [from, to] = state.range, { nRanks, top } = state;
  const width = Math.max(pixels.width - MARGIN.left - MARGIN.right, 10);
  const both = Math.max(pixels.height - MARGIN.top - MARGIN.bottom - GAP, 20);
  const lanes = { left: MARGIN.left, top: MARGIN.top, width, height: Math.round(both * LANES_SHARE) };
  const levels = { left: MARGIN.left, top: lanes.top + lanes.height + GAP, width, height: both - Math.round(both * LANES_SHARE) };
  const lane = lanes.height / nRanks;
  // compute fills the lane; messages get a strip of their own below it
  const [above, height] = state.messages ? [0.08, 0.66] : [0.1, 0.8];
  return {
    from, to, lane, lanes, levels, width, perMs: width / (to - from),
    x(time) { return (time - from) * this.perMs; },
    time(x) { return from + x / this.perMs; },
    y(level) { return levels.height * (1 - level / top); },
    box(rank, thin, inset) {
      if (thin) return [(rank + 0.79) * lane, 0.13 * lane];
      return [(rank + above + inset) * lane, (height - 2 * inset) * lane];
    },
  };
}

const within = ({ left, top, width, height }, x, y) => x >= left && x <= left + width && y >= top && y <= top + height;

// ── ticks ────────────────────────────────────────────────────────────────────────────────────────────────────────

// Round numbers from `from` to `to`, at most `most` of them, and the digits they need behind the point.
function ticks(from, to, most) {
  const rough = (to - from) / Math.max(most, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999999);
  const digits = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 12);
  const values = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n++) values.push(n * step);
  return { values, text: (value) => (value === 0 ? "0" : value.toFixed(digits)) };
}
