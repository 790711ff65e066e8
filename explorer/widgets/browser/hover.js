// What is under the pointer, in words.

// The bar at a place on the lanes: measured before predicted, messages in their own strip.
function barAt(state, x, y) {
  const { scales, style } = state;
  const rank = Math.floor(y / scales.lane), time = scales.time(x);
  if (rank < 0 || rank >= state.nRanks) return null;
  const [stripTop] = scales.box(rank, true, 0);
  const thin = state.messages && y >= stripTop;
  for (const block of [state.measured, state.predicted]) {
    if (!block) continue;
    for (let kind = 0; kind < style.colors.length; kind++) {
      if (style.thin[kind] !== thin || isHidden(state, "kind", style.legend[kind])) continue;
      const group = rank * style.colors.length + kind;
      const i = bisect(block.start, block.offset[group], block.offset[group + 1], time) - 1;
      if (i < block.offset[group] || block.start[i] + block.duration[i] < time) continue;
      const bar = { block, kind, rank, i }, { others, above } = sharedLanes(state, block), [top, height] = boxOf(state, bar);
      const first = !above[i], last = above[i] === others[i]; // of those that share the lane: they reach to its edges
      if ((first || y >= top) && (last || y < top + height)) return bar;
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

// What there is to say of a place on the canvas, "" if nothing.
function textAt(state, x, y) {
  const { lanes, levels } = state.scales;
  if (within(levels, x, y)) return levelsAt(state, x - levels.left);
  if (!within(lanes, x, y)) return "";
  const place = [x - lanes.left, y - lanes.top], bar = barAt(state, ...place), told = bar ? marksIn(state, bar) : [];
  const near = marksNear(state, ...place).filter((mark) => !told.includes(mark)).map(markText);
  return [...near, bar ? describeMarked(state, bar) : gapUnder(state, ...place)].filter(Boolean).join("\n");
}

const gapUnder = (state, x, y) => describeGap(state, Math.floor(y / state.scales.lane), state.scales.time(x));

function addHover(canvas, state, signal) {
  const tip = document.createElement("div");
  tip.className = "pipeline-tooltip";
  tip.setAttribute("role", "tooltip");
  canvas.after(tip);
  let at = null; // where the pointer is, while there is something to say of it
  const hide = () => { at = null; tip.style.display = "none"; };
  const tell = ({ x, y }) => {
    const text = textAt(state, x, y);
    if (!text) return hide();
    at = { x, y };
    tip.textContent = text;
    tip.style.display = "block";
    const beyond = x + 14 + tip.offsetWidth > canvas.clientWidth;
    tip.style.left = `${beyond ? Math.max(x - 14 - tip.offsetWidth, 0) : x + 14}px`;
    tip.style.top = `${y + 14}px`;
  };
  canvas.addEventListener("mousemove", (event) => {
    if (!state.scales || event.buttons) return hide();
    const frame = canvas.getBoundingClientRect();
    tell({ x: event.clientX - frame.left, y: event.clientY - frame.top });
  }, { signal });
  canvas.addEventListener("mouseleave", hide, { signal });
  state.painted.push(() => { if (at) tell(at); }); // another picture may have come under a pointer that rests
}
