// What is not data: the ground of both plots, grid, ticks and titles.

const FONT = "12px system-ui, sans-serif";
const TALLEST_TICK = 15; // pixels between two names of lanes, at least

function drawGround(pen, scales, theme) {
  pen.fillStyle = theme.idle;
  for (const { left, top, width, height } of [scales.lanes, scales.levels]) pen.fillRect(left, top, width, height);
}

// One unit for the whole axis, however far the reader zooms in.
function timeUnit(until) {
  return [["s", 1000], ["ms", 1], ["µs", 0.001]].find(([, ms]) => until >= ms) || ["µs", 0.001];
}

// Grid lines and time's numbers, below the lower plot.
function drawTimes(pen, scales, until, theme) {
  const { lanes, levels } = scales, bottom = levels.top + levels.height;
  const [unit, ms] = timeUnit(until);
  const { values, text } = ticks(scales.from / ms, scales.to / ms, scales.width / 95);
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const value of values) {
    const x = Math.round(lanes.left + scales.x(value * ms)) + 0.5;
    pen.fillStyle = theme.grid;
    for (const plot of [lanes, levels]) pen.fillRect(x - 0.5, plot.top, 1, plot.height);
    pen.fillRect(x - 0.5, bottom, 1, 4);
    pen.fillStyle = theme.text;
    pen.fillText(text(value), x, bottom + 6);
  }
  pen.fillText(`time, ${unit}`, lanes.left + lanes.width / 2, bottom + 21);
}

function drawLaneNames(pen, scales, nRanks, theme) {
  const every = Math.ceil(TALLEST_TICK / scales.lane);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.fillStyle = theme.text;
  for (let rank = 0; rank < nRanks; rank += every) {
    pen.fillText(`rank ${rank}`, scales.lanes.left - 6, scales.lanes.top + (rank + 0.5) * scales.lane);
  }
}

function drawLevels(pen, scales, { top, title }, theme) {
  const { left, top: above, width, height } = scales.levels;
  const { values, text } = ticks(0, top, height / 28);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of values) {
    const y = Math.round(above + scales.y(value));
    pen.fillStyle = theme.grid;
    pen.fillRect(left, y, width, 1);
    pen.fillStyle = theme.text;
    pen.fillText(text(value), left - 6, y);
  }
  pen.save();
  pen.translate(12, above + height / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(title, 0, 0);
  pen.restore();
}

function drawAxes(pen, scales, state, theme) {
  pen.font = FONT;
  drawGround(pen, scales, theme);
  drawTimes(pen, scales, state.whole[1], theme);
  drawLaneNames(pen, scales, state.nRanks, theme);
  drawLevels(pen, scales, state, theme);
}
