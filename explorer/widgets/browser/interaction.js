// What the reader does with the figure: hover, keyboard, size, theme.

// ── hover ────────────────────────────────────────────────────────────────────────────────────────────────────────

// The bar at a place on the canvas: measured before predicted, messages in their own strip.
function barAt(state, x, y) {
  const { scales, style } = state;
  const rank = Math.floor(y / scales.lane), time = scales.time(x);
  if (rank < 0 || rank >= state.nRanks) return null;
  const [stripTop] = scales.box(rank, true, 0);
  const thin = state.messages && y >= stripTop;
  for (const block of [state.measured, state.predicted]) {
    if (!block) continue;
    for (let kind = 0; kind < style.colors.length; kind++) {
      if (style.thin[kind] !== thin || state.hidden[style.legend[kind]]) continue;
      const group = rank * style.colors.length + kind;
      const i = bisect(block.start, block.offset[group], block.offset[group + 1], time) - 1;
      if (i >= block.offset[group] && block.start[i] + block.duration[i] >= time) return { block, kind, rank, i };
    }
  }
  return null;
}

const inMs = (value) => `${Number(value.toPrecision(4))} ms`;

function describe({ block, kind, rank, i }, style) {
  const microBatch = block.micro_batch[i] === NO_MICRO_BATCH ? "" : ` · micro-batch ${block.micro_batch[i]}`;
  const lines = [
    `${style.letters[kind]}  ${style.titles[kind]}`,
    `rank ${rank} · stage ${block.stage[i]}${microBatch}`,
    `start ${inMs(block.start[i])}`,
    `duration ${inMs(block.duration[i])}`,
  ];
  if (block.wait[i] > 0) lines.push(`waited ${inMs(block.wait[i])} before it`);
  lines.push(style.origins[block.origin[i]]);
  return lines.join("\n");
}

// What there is to say of a place in the figure, "" if nothing.
function textAt(state, x, y) {
  const within = ({ left, top, width, height }) => x >= left && x <= left + width && y >= top && y <= top + height;
  if (within(state.lineScales)) return levelsAt(state, x - state.lineScales.left);
  if (!within(state.scales)) return "";
  const bar = barAt(state, x - state.scales.left, y - state.scales.top);
  return bar ? describe(bar, state.style) : "";
}

function addHover(graph, el, state, signal) {
  const tip = document.createElement("div");
  tip.className = "pipeline-tooltip";
  tip.setAttribute("role", "tooltip");
  el.appendChild(tip);
  const hide = () => { tip.style.display = "none"; };
  graph.addEventListener("mousemove", (event) => {
    if (!state.scales || event.buttons) return hide();
    const frame = graph.getBoundingClientRect();
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    const text = textAt(state, x, y);
    if (!text) return hide();
    tip.textContent = text;
    tip.style.display = "block";
    const beyond = x + 14 + tip.offsetWidth > frame.width;
    tip.style.left = `${beyond ? x - 14 - tip.offsetWidth : x + 14}px`;
    tip.style.top = `${y + 14}px`;
  }, { signal });
  graph.addEventListener("mouseleave", hide, { signal });
}

// ── keyboard, size and theme ─────────────────────────────────────────────────────────────────────────────────────

function addKeyboard(graph, el, state, signal) {
  const moves = { ArrowLeft: [-0.15, -0.15], ArrowRight: [0.15, 0.15], "+": [0.2, -0.2], "=": [0.2, -0.2], "-": [-0.25, 0.25] };
  el.tabIndex = 0;
  el.dataset.lmSuppressShortcuts = "true"; // JupyterLab leaves our keys alone
  el.addEventListener("keydown", (event) => {
    if (event.target !== el || !window.Plotly) return;
    const [from, to] = graph._fullLayout.xaxis.range.map(Number), span = to - from;
    const move = moves[event.key];
    if (!move && event.key !== "Home" && event.key !== "0") return;
    event.preventDefault();
    event.stopPropagation();
    const range = move ? [from + move[0] * span, to + move[1] * span] : state.whole;
    window.Plotly.relayout(graph, { "xaxis.range": range, "xaxis2.range": range });
  }, { signal });
}

// A FigureWidget does not follow its container by itself.
function followSize(graph, el, signal) {
  let waiting = 0;
  const observer = new ResizeObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const off = graph._fullLayout && Math.abs(graph.clientWidth - graph._fullLayout.width) > 1;
      if (off && graph.clientWidth && window.Plotly) window.Plotly.Plots.resize(graph);
    }, 50);
  });
  observer.observe(el);
  signal.addEventListener("abort", () => { observer.disconnect(); clearTimeout(waiting); });
}

function followTheme(model, signal) {
  const tell = () => {
    const dark = document.body.dataset.jpThemeLight === "false" || document.body.classList.contains("vscode-dark");
    if (model.get("dark") === dark) return;
    model.set("dark", dark);
    model.save_changes();
  };
  const observer = new MutationObserver(tell);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  signal.addEventListener("abort", () => observer.disconnect());
  tell();
}
