// Finding actions, as "m5", "F3", "stage 2 B7" or "rank 1 W", and following a micro-batch through all ranks.

const WORDS = [
  [/^m(?:icro-?batch)?[\s-]*(\d+)$/i, ([, n]) => ({ microBatch: Number(n) })],
  [/^(?:stage|s)\s*(\d+)$/i, ([, n]) => ({ stage: Number(n) })],
  [/^rank\s*(\d+)$/i, ([, n]) => ({ rank: Number(n) })],
  [/^(\d+)?([a-z])(\d+)?$/i, ([, stage, letter, n]) => ({
    ...(stage && { stage: Number(stage) }), letter: letter.toUpperCase(), ...(n && { microBatch: Number(n) }),
  })],
  [/^(\d+)$/, ([, n]) => ({ microBatch: Number(n) })],
];
const MOST_FOUND = 20000;
const ADVICE = "try m5, F3, stage 2 B7 or rank 1 W";

// What a query asks for, {} if it is empty, null if it cannot be read.
function readQuery(text, letters) {
  const words = text.trim().replace(/\b(stage|rank|micro-?batch|m|s)\s+(?=\d)/gi, "$1").split(/[\s,]+/).filter(Boolean);
  const wanted = {};
  for (const word of words) {
    const rule = WORDS.find(([pattern]) => pattern.test(word));
    if (!rule) return null;
    Object.assign(wanted, rule[1](word.match(rule[0])));
  }
  return wanted.letter && !letters.includes(wanted.letter) ? null : wanted;
}

// Positions of the bars that are asked for, in order of time; messages only where no kind is.
function findBars(state, block, { microBatch, stage, rank, letter }) {
  const { letters, thin, legend } = state.style, found = [];
  for (let group = 0; group + 1 < block.offset.length; group++) {
    const kind = group % thin.length;
    if (isHidden(state, "kind", legend[kind]) || (rank !== undefined && rank !== Math.floor(group / thin.length))) continue;
    if (letter !== undefined && letters[kind] !== letter) continue;
    for (let i = block.offset[group]; i < block.offset[group + 1]; i++) {
      if (microBatch !== undefined && block.micro_batch[i] !== microBatch) continue;
      if (stage === undefined || block.stage[i] === stage) found.push(i);
    }
  }
  return Uint32Array.from(found).sort((a, b) => block.start[a] - block.start[b] || a - b);
}

// `state.found`: { block, bars, wanted } of the search that is on, or null.
function searchFor(state, text) {
  const block = shownBlock(state), wanted = readQuery(text, state.style.letters);
  if (!block || !wanted || !Object.keys(wanted).length) state.found = null;
  else state.found = { block, bars: findBars(state, block, wanted), wanted };
  if (state.found && state.found.bars.length > MOST_FOUND) state.found = null; // would leave little to stand out from
  return wanted;
}

// ── the field ────────────────────────────────────────────────────────────────────────────────────────────────────

function makeSearch(model, state, selection, reveal, repaint, speak) {
  const field = element("input", "pipeline-search"), count = element("span", "pipeline-count");
  Object.assign(field, { type: "search", placeholder: "Find m5, F3, stage 2 B7", value: model.get("search"), spellcheck: false });
  field.setAttribute("aria-label", "Find a micro-batch or an action");
  const look = () => {
    const wanted = searchFor(state, field.value), { found } = state;
    field.setAttribute("aria-invalid", !wanted);
    const asked = wanted && Object.keys(wanted).length;
    setText(count, !wanted ? ADVICE : !asked ? "" : !found ? "too many, say more" : `${found.bars.length} found`);
    steps.hidden = !found || !found.bars.length;
  };
  const step = (by) => {
    const { found } = state;
    if (!found || !found.bars.length) return;
    const n = found.bars.length, at = state.picked ? found.bars.indexOf(state.picked.i) : -1;
    const next = at < 0 ? (by > 0 ? 0 : n - 1) : (at + by + n) % n;
    selection.pick(barOf(state, found.block, found.bars[next]));
    reveal(state.picked);
    count.textContent = `${next + 1} of ${n}`;
  };
  const clear = () => {
    const had = Boolean(field.value);
    field.value = "";
    changed();
    return had;
  };
  const changed = () => {
    look();
    if (model.get("search") !== field.value) {
      model.set("search", field.value);
      model.save_changes();
    }
    if (state.found) speak(`${state.found.bars.length} bars found`);
    repaint();
  };
  const steps = element("span", "pipeline-steps", makeButton("‹", "Previous found", () => step(-1)), makeButton("›", "Next found", () => step(1)));
  field.addEventListener("input", changed);
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { event.preventDefault(); clear(); }
  });
  return { box: element("span", "pipeline-find", field, count, steps), look, clear, focus: () => field.focus() };
}

// ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────

const MOST_JOINED = 2000; // more would be a ball of wool

// What was found stands out of the faded others, joined in order of time where it is of one micro-batch.
function drawFound(pen, scales, state, theme) {
  const { block, bars, wanted } = state.found, { colors, thin } = state.style, path = [];
  for (const i of bars) {
    const start = block.start[i], end = start + block.duration[i];
    const bar = barOf(state, block, i), { kind } = bar, [y, height] = boxOf(state, bar);
    const left = scales.x(start), width = Math.max(scales.x(end) - left, 2.5);
    if (!thin[kind]) path.push([left + width / 2, y + height * 0.86]); // below the letters
    if (end < scales.from || start > scales.to) continue;
    pen.fillStyle = colors[kind];
    pen.fillRect(left, y, width, height);
    const text = thin[kind] ? "" : letterOf(state.style, block, i, kind, width, height);
    if (!text) continue;
    inkFor(pen, state.style, kind);
    pen.font = letterFont(letterSize(height));
    pen.fillText(text, left + (width - 1) / 2, y + height / 2 + 0.5);
  }
  if (wanted.microBatch !== undefined && path.length < MOST_JOINED) drawPath(pen, path, theme);
}

function drawPath(pen, path, theme) {
  for (const [color, width] of [[theme.paper, 3.5], [theme.text, 1.5]]) {
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.lineJoin = "round";
    pen.beginPath();
    path.forEach(([x, y], n) => (n ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
  }
  pen.fillStyle = theme.text;
  for (const [x, y] of path) pen.fillRect(x - 2, y - 2, 4, 4);
}
