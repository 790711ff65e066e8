// What one rank holds memory for, stacked over time; a click asks the kernel who holds it at that moment.
//
// Read behind columns.js and scales.js, which it shares; its edges are the picture's, so that times stand in one line.

const HEIGHT = 300, BOTTOM = 36, TOP = 12, LEAST_LETTER = [14, 14]; // pixels; width and height of what holds a letter

function shape(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function plotOf({ end, top }, width) {
  const inner = Math.max(width - MARGIN.left - MARGIN.right, 10), height = HEIGHT - TOP - BOTTOM;
  return {
    left: MARGIN.left, right: MARGIN.left + inner, bottom: TOP + height, inner, height,
    x: (time) => MARGIN.left + (inner * time) / end,
    time: (x) => Math.min(Math.max(((x - MARGIN.left) / inner) * end, 0), end),
    y: (level) => TOP + height * (1 - level / top),
  };
}

// Corners of a step line, each level held until the next time and the last until the end.
function corners(plot, times, levels, end) {
  return times.flatMap((time, i) => {
    const y = plot.y(levels[i]).toFixed(1);
    return [`${plot.x(time).toFixed(1)},${y}`, `${plot.x(i + 1 < times.length ? times[i + 1] : end).toFixed(1)},${y}`];
  });
}

function drawAround(svg, plot, { end, top, unit, timeUnit }) {
  const down = ticks(0, top, plot.height / 32), along = ticks(0, end, plot.inner / 95);
  for (const value of down.values) {
    const y = Math.round(plot.y(value)) + 0.5;
    svg.append(shape("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y, y2: y }));
    svg.append(shape("text", { x: plot.left - 6, y: y + 4, "text-anchor": "end" }, down.text(value)));
  }
  for (const value of along.values) {
    const x = plot.x(value);
    svg.append(shape("text", { x, y: plot.bottom + 16, "text-anchor": "middle" }, along.text(value)));
  }
  const middle = TOP + plot.height / 2;
  svg.append(shape("text", { x: plot.left + plot.inner / 2, y: HEIGHT - 4, "text-anchor": "middle" }, `time, ${timeUnit}`));
  svg.append(shape("text", { transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle" }, `memory, ${unit}`));
}

// The layers from below, each with its letter where it is high and wide enough for one.
function drawLayers(svg, plot, { times, layers, end }) {
  let below = times.map(() => 0);
  for (const { color, ink, letter, levels } of layers) {
    const above = below.map((level, i) => level + levels[i]);
    const points = [...corners(plot, times, above, end), ...corners(plot, times, below, end).reverse()];
    svg.append(shape("polygon", { points: points.join(" "), fill: color }));
    const middle = letterTime(plot, times, levels, end);
    if (middle >= 0) {
      const at = Math.max(bisect(times, 0, times.length, middle) - 1, 0), y = plot.y((below[at] + above[at]) / 2) + 4;
      svg.append(shape("text", { class: "letter", x: plot.x(middle), y, style: `fill: ${ink}`, "text-anchor": "middle" }, letter));
    }
    below = above;
  }
}

// The middle of the longest time in which a layer is high enough; −1 if none is wide enough.
function letterTime(plot, times, levels, end) {
  let from = -1, middle = -1, widest = LEAST_LETTER[0];
  levels.forEach((level, i) => {
    if (plot.bottom - plot.y(level) < LEAST_LETTER[1]) { from = -1; return; }
    if (from < 0) from = times[i];
    const until = i + 1 < times.length ? times[i + 1] : end, width = plot.x(until) - plot.x(from);
    if (width >= widest) [middle, widest] = [(from + until) / 2, width];
  });
  return middle;
}

function drawLimit(svg, plot, { level, text }) {
  const y = plot.y(level), below = y - TOP < 16;
  svg.append(shape("rect", { class: "beyond", x: plot.left, y: TOP, width: plot.inner, height: Math.max(y - TOP, 0) }));
  svg.append(shape("line", { class: "limit", x1: plot.left, x2: plot.right, y1: y, y2: y }));
  svg.append(shape("text", { class: "said", x: plot.right - 6, y: below ? y + 15 : y - 6, "text-anchor": "end" }, text));
}

function drawMoment(svg, plot, moment) {
  if (moment >= 0) svg.append(shape("line", { class: "moment", x1: plot.x(moment), x2: plot.x(moment), y1: TOP, y2: plot.bottom }));
}

// The peak is a button, for keys as for the pointer.
function drawPeak(svg, plot, { time, level, text }, choose) {
  const [x, y] = [plot.x(time), plot.y(level)];
  const mark = shape("path", { class: "peak", d: `M${x - 7} ${y}l7 -7l7 7l-7 7z`, tabindex: 0, role: "button", "aria-label": text });
  mark.append(shape("title", {}, text));
  mark.addEventListener("click", (event) => { event.stopPropagation(); choose(time); });
  mark.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(time);
  });
  svg.append(mark);
}

// What is held at a time, a line for each layer from the top of the stack down.
function heldAt({ times, layers, unit, timeUnit, predicted, limit }, time) {
  const i = Math.max(bisect(times, 0, times.length, time) - 1, 0), say = (value) => `${Number(value.toPrecision(4))} ${unit}`;
  const total = layers.reduce((sum, { levels }) => sum + levels[i], 0);
  const lines = [`at ${Number(time.toPrecision(4))} ${timeUnit}: ${say(total)}`];
  for (const { title, levels } of [...layers].reverse()) if (levels[i] > 0) lines.push(`${title} ${say(levels[i])}`);
  if (predicted) lines.push(`predicted, in all ${say(predicted.levels[Math.max(bisect(predicted.times, 0, predicted.times.length, time) - 1, 0)])}`);
  if (limit) lines.push(limit.text);
  return [...lines, "click: who holds it"].join("\n");
}

function makeLegend({ layers, predicted }) {
  const row = document.createElement("div");
  row.className = "pipeline-memory-keys";
  for (const { title, letter, color, ink } of layers) {
    const key = document.createElement("span"), chip = document.createElement("i");
    Object.assign(chip.style, { background: color, color: ink });
    chip.textContent = letter;
    key.append(chip, title);
    row.append(key);
  }
  if (predicted) row.append(Object.assign(document.createElement("span"), { textContent: "- - predicted, in all" }));
  return row;
}

function addPointer(svg, plot, chart, tip, choose) {
  const placeOf = (event) => {
    const frame = svg.getBoundingClientRect(), x = event.clientX - frame.left;
    return { x, y: event.clientY - frame.top + svg.parentElement.offsetHeight - HEIGHT, inside: x >= plot.left && x <= plot.right };
  };
  svg.addEventListener("mousemove", (event) => {
    const { x, y, inside } = placeOf(event);
    tip.hidden = !inside;
    if (!inside) return;
    tip.textContent = heldAt(chart, plot.time(x));
    const beyond = x + 14 + tip.offsetWidth > plot.right;
    Object.assign(tip.style, { left: `${beyond ? Math.max(x - 14 - tip.offsetWidth, 0) : x + 14}px`, top: `${y + 14}px` });
  });
  svg.addEventListener("mouseleave", () => { tip.hidden = true; });
  svg.addEventListener("click", (event) => { if (placeOf(event).inside) choose(plot.time(placeOf(event).x)); });
}

function draw(model, el) {
  const chart = model.get("chart"), width = el.clientWidth;
  if (!chart.times || !width) return el.replaceChildren();
  const plot = plotOf(chart, width), tip = Object.assign(document.createElement("div"), { className: "pipeline-memory-tip", hidden: true });
  const svg = shape("svg", { width, height: HEIGHT, role: "figure", "aria-label": chart.label });
  const choose = (time) => {
    model.set("chosen", [time, model.get("chosen").at(1) + 1]); // the count tells a second click apart
    model.save_changes();
  };
  drawAround(svg, plot, chart);
  drawLayers(svg, plot, chart);
  const { predicted, limit, peak, end } = chart;
  if (predicted) svg.append(shape("polyline", { class: "predicted", points: corners(plot, predicted.times, predicted.levels, end).join(" ") }));
  if (limit) drawLimit(svg, plot, limit);
  drawMoment(svg, plot, model.get("moment"));
  drawPeak(svg, plot, peak, choose);
  addPointer(svg, plot, chart, tip, choose);
  const focused = el.contains(document.activeElement);
  el.replaceChildren(makeLegend(chart), svg, tip);
  if (focused) svg.querySelector(".peak").focus(); // the only part that takes keys
}

export default {
  render({ model, el, signal }) {
    el.classList.add("pipeline-memory");
    const redraw = () => draw(model, el), observer = new ResizeObserver(redraw);
    for (const name of ["chart", "moment"]) model.on(`change:${name}`, redraw);
    observer.observe(el);
    signal.addEventListener("abort", () => {
      observer.disconnect();
      for (const name of ["chart", "moment"]) model.off(`change:${name}`, redraw);
    });
  },
};
