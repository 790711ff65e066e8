// One canvas: axes, then bars, then lines.

function paint(canvas, state, el) {
  const ratio = window.devicePixelRatio || 1;
  const { pixels } = state;
  if (!pixels) return; // never seen yet
  const scales = (state.scales = makeScales(state, pixels));
  const pen = cleanPen(canvas, pixels, ratio);
  drawAxes(pen, scales, state, isDark() ? state.style.dark : state.style.light);
  const drawn = inPlot(pen, scales.lanes, () => drawBars(pen, scales, state, ratio));
  inPlot(pen, scales.levels, () => drawLines(pen, scales, state));
  el.dataset.barsDrawn = drawn.predicted;
  el.dataset.measuredDrawn = drawn.measured;
  el.dataset.mode = drawn.mode;
  el.dataset.range = state.range.join();
}

function cleanPen(canvas, pixels, ratio) {
  const width = Math.round(pixels.width * ratio), height = Math.round(pixels.height * ratio);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, pixels.width, pixels.height);
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
