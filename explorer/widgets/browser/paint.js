// One canvas: axes, then idle time, bars, what stands out of them, marks, then lines.

function paint(canvas, state, el) {
  const ratio = window.devicePixelRatio || 1;
  const { pixels } = state;
  if (!pixels) return; // never seen yet
  state.scales = makeScales(state, pixels);
  state.ground ??= groundOf(canvas);
  const drawn = drawPicture(cleanPen(canvas, pixels, ratio, state.ground), state, ratio);
  el.dataset.barsDrawn = drawn.predicted;
  el.dataset.measuredDrawn = drawn.measured;
  el.dataset.gapsDrawn = drawn.gaps;
  el.dataset.marksDrawn = drawn.marks;
  el.dataset.mode = drawn.mode;
  el.dataset.range = state.range.join();
  state.painted.forEach((react) => react());
}

// Draws all with any pen, at the scales that the state has; returns what it drew.
function drawPicture(pen, state, ratio) {
  const { scales } = state, theme = themeOf(state);
  drawAxes(pen, scales, state, theme);
  const drawn = inPlot(pen, scales.lanes, () => {
    const gaps = drawGaps(pen, scales, state, theme), bars = drawBars(pen, scales, state, ratio);
    if (state.found) drawFound(pen, scales, state, theme);
    drawSelection(pen, scales, state, theme);
    return { ...bars, gaps, marks: drawMarks(pen, scales, state, theme) };
  });
  inPlot(pen, scales.levels, () => drawLines(pen, scales, state, ratio));
  return drawn;
}

// The colour behind a canvas. It is drawn too: the browser need not blend each of the canvas's pixels with the page's.
function groundOf(canvas) {
  for (let one = canvas; one; one = one.parentElement) {
    const color = getComputedStyle(one).backgroundColor;
    if (color.startsWith("rgb(")) return color; // others let something through
  }
  return "#fff";
}

function cleanPen(canvas, pixels, ratio, ground) {
  const width = Math.round(pixels.width * ratio), height = Math.round(pixels.height * ratio);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d", { alpha: false });
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = ground;
  pen.fillRect(0, 0, pixels.width, pixels.height);
  return pen;
}

// Calls draw with the pen's origin at the plot's corner, and nothing drawn outside of it.
function inPlot(pen, { left, top, width, height }, draw) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.translate(left, top);
  const result = draw();
  pen.restore();
  return result;
}

function isDark() {
  return document.body.dataset.jpThemeLight === "false" || document.body.classList.contains("vscode-dark");
}

const themeOf = (state) => (isDark() ? state.style.dark : state.style.light);
