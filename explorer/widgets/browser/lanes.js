// The bars of one rank in order of time, and the idle time between them.

const shownBlock = (state) => state.measured || state.predicted;

// Which kinds are bars of computing that are not hidden.
const seenKinds = ({ style, hidden }) => style.thin.map((isThin, kind) => !isThin && !hidden.has(`kind ${style.legend[kind]}`));

// Positions of the rank's bars of computing in order of their starts; kept until other data come, or a kind is hidden.
function laneOf(state, block, rank) {
  const seen = seenKinds(state), nKinds = seen.length;
  const key = `${rank} ${seen.map(Number).join("")}`, lanes = (block.lanes ||= new Map());
  if (!lanes.has(key)) {
    const parts = [];
    for (let kind = 0; kind < nKinds; kind++) {
      const group = rank * nKinds + kind;
      if (seen[kind]) for (let i = block.offset[group]; i < block.offset[group + 1]; i++) parts.push(i);
    }
    lanes.set(key, Uint32Array.from(parts).sort((a, b) => block.start[a] - block.start[b] || a - b));
  }
  return lanes.get(key);
}

// Bars of computing that begin with others of their rank, as an F run together with a B, share the height of the lane:
// with how many (`others`), and how many of those lie above (`above`). A hidden one takes no room. Kept until other
// data come, or a kind is hidden.
function sharedLanes(state, block) {
  const seen = seenKinds(state), nKinds = seen.length, key = seen.map(Number).join("");
  if (block.shared && block.shared.key === key) return block.shared;
  const shared = (block.shared = { key, others: new Uint8Array(block.n), above: new Uint8Array(block.n) });
  const kinds = [...seen.keys()].filter((kind) => seen[kind]);
  for (let rank = 0; (rank + 1) * nKinds < block.offset.length; rank++) {
    const groups = kinds.map((kind) => rank * nKinds + kind), filled = groups.filter((group) => block.offset[group] < block.offset[group + 1]);
    filled.forEach((upper, n) => filled.slice(n + 1).forEach((lower) => pairUp(block, shared, upper, lower)));
  }
  return shared;
}

// Both groups are in order of their starts.
function pairUp({ offset, start, duration }, { others, above }, upper, lower) {
  let i = offset[upper], k = offset[lower];
  while (i < offset[upper + 1] && k < offset[lower + 1]) {
    if (start[i] < start[k]) i++;
    else if (start[i] > start[k]) k++;
    else {
      if (duration[i] > 0 && duration[k] > 0) { others[i]++; others[k]++; above[k]++; }
      i++;
      k++;
    }
  }
}

// Top and height of one bar.
function boxOf(state, { block, i, rank, kind }, inset = 0) {
  const [y, height] = state.scales.box(rank, state.style.thin[kind], inset), { others, above } = sharedLanes(state, block);
  const part = height / (others[i] + 1);
  return [y + above[i] * part, part];
}

// The bar at a position of a block's columns, with its rank and kind.
function barOf(state, block, i) {
  const group = bisect(block.offset, 0, block.offset.length, i + 1) - 1, nKinds = state.style.thin.length;
  return { block, i, rank: Math.floor(group / nKinds), kind: group % nKinds };
}

// Place in `lane` of the bar that runs at `time`, or else of the nearest; −1 if there is none.
function placeAt(block, lane, time) {
  const startAt = (place) => block.start[lane[place]];
  let low = 0, high = lane.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (startAt(middle) <= time) low = middle + 1;
    else high = middle;
  }
  if (!low) return lane.length ? 0 : -1;
  const end = startAt(low - 1) + block.duration[lane[low - 1]];
  return low < lane.length && time > end && startAt(low) - time < time - end ? low : low - 1;
}

// Idle intervals of a rank, as [from, to], from the beginning to the last end of all.
function idleOf(state, block, rank) {
  const idle = [], tiny = (state.whole[1] - state.whole[0]) * 1e-6; // measured starts come in 32 bits
  let until = 0;
  for (const i of laneOf(state, block, rank)) {
    if (block.start[i] - until > tiny) idle.push([until, block.start[i]]);
    until = Math.max(until, block.start[i] + block.duration[i]);
  }
  if (block.end - until > tiny) idle.push([until, block.end]);
  return idle;
}
