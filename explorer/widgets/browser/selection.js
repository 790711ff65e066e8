// What is chosen: one bar, or a stretch of time on some ranks; the kernel and screen readers are told.

// `state.picked`: a bar as `barOf` gives it, or null; `state.region`: { from, to, ranks: [first, last] }, or null.
function makeSelection(model, state, repaint, speak, signal) {
  const tellLater = makeTeller(model, 120, signal);
  const tell = (selected) => {
    model.set("selected", selected);
    tellLater();
    repaint();
  };
  const pick = (bar) => {
    Object.assign(state, { picked: bar, region: null });
    speak(bar ? describeMarked(state, bar).split("\n").join(", ") : "nothing selected");
    tell(bar ? { of: nameOf(state, bar.block), row: bar.i } : {});
  };
  const choose = (region, words) => {
    Object.assign(state, { picked: null, region });
    const { from, to, ranks: [first, last] } = region;
    speak(words || `selected ranks ${first} to ${last}, from ${inMs(from)} to ${inMs(to)}`);
    tell({ of: nameOf(state, shownBlock(state)), ...region });
  };
  const clear = () => {
    const had = state.picked || state.region;
    if (had) pick(null);
    return Boolean(had);
  };
  const restore = () => {
    restoreSelection(model, state);
    const { picked } = state, told = model.get("selected");
    if (picked && (told.row !== picked.i || told.of !== nameOf(state, picked.block))) { // its place in the columns is another now
      model.set("selected", { of: nameOf(state, picked.block), row: picked.i });
      tellLater();
    }
  };
  return { pick, choose, clear, restore };
}

const nameOf = (state, block) => (block === state.measured ? "measured" : "predicted");

// After other data have come: the same action where it still exists; of a fresh page, what the kernel remembers.
function restoreSelection(model, state) {
  const { picked } = state, kept = model.get("selected");
  if (picked) state.picked = [state.measured, state.predicted].includes(picked.block) ? picked : sameAction(state, picked);
  else if (kept.row !== undefined && !state.region) {
    const block = state[kept.of];
    state.picked = block && kept.row < block.n ? barOf(state, block, kept.row) : null;
  } else if (kept.ranks) state.region = kept.ranks[1] < state.nRanks ? kept : null;
}

function sameAction(state, { block: old, i: at, rank, kind }) {
  const block = shownBlock(state), group = rank * state.style.thin.length + kind;
  if (!block || rank >= state.nRanks) return null;
  for (let i = block.offset[group]; i < block.offset[group + 1]; i++) {
    if (block.micro_batch[i] === old.micro_batch[at] && block.stage[i] === old.stage[at]) return { block, i, rank, kind };
  }
  return null;
}

// ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────

function drawSelection(pen, scales, state, theme) {
  const { picked, region } = state;
  if (region) {
    const [first, last] = region.ranks, left = scales.x(region.from), width = scales.x(region.to) - left;
    pen.fillStyle = theme.text;
    pen.globalAlpha = 0.13;
    pen.fillRect(left, first * scales.lane, width, (last + 1 - first) * scales.lane);
    pen.globalAlpha = 1;
    outline(pen, left, first * scales.lane, width, (last + 1 - first) * scales.lane, theme);
  }
  if (picked && !isHidden(state, "kind", state.style.legend[picked.kind])) {
    const { block, i } = picked, [y, height] = boxOf(state, picked);
    const left = scales.x(block.start[i]);
    outline(pen, left, y, Math.max(scales.x(block.start[i] + block.duration[i]) - left, 3), height, theme);
  }
}

// Seen on any bar: the text's colour around the paper's.
function outline(pen, left, top, width, height, theme) {
  const from = Math.max(left, -9), to = Math.min(left + width, 1e5);
  for (const [color, by] of [[theme.paper, 0.5], [theme.text, 2]]) {
    pen.strokeStyle = color;
    pen.lineWidth = color === theme.text ? 2 : 1.5;
    pen.strokeRect(from - by, top - by, to - from + 2 * by, height + 2 * by);
  }
}
