// The bars of one rank in order of time, and the idle time between them.

const shownBlock = (state) => state.measured || state.predicted;

// Positions of the rank's bars of computing in order of their starts; kept until other data come, or a kind is hidden.
function laneOf(state, block, rank) {
  const { thin, legend } = state.style, nKinds = thin.length;
  const seen = thin.map((isThin, kind) => !isThin && !isHidden(state, "kind", legend[kind]));
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

// Bars of computing that begin with another of their rank, as an F run together with a B: 1 the upper half of the lane,
// 2 the lower, 0 a bar alone; kept until other data come.
function halvesOf(state, block) {
  if (block.halves) return block.halves;
  const { thin } = state.style, nKinds = thin.length, halves = (block.halves = new Uint8Array(block.n));
  const groups = (rank) => [...thin.keys()].filter((kind) => !thin[kind]).map((kind) => rank * nKinds + kind);
  for (let rank = 0; (rank + 1) * nKinds < block.offset.length; rank++) {
    const filled = groups(rank).filter((group) => block.offset[group] < block.offset[group + 1]);
    filled.forEach((upper, n) => filled.slice(n + 1).forEach((lower) => pairUp(block, halves, upper, lower)));
  }
  return halves;
}

// Both groups are in order of their starts.
function pairUp({ offset, start, duration }, halves, upper, lower) {
  let i = offset[upper], k = offset[lower];
  while (i < offset[upper + 1] && k < offset[lower + 1]) {
    if (start[i] < start[k]) i++;
    else if (start[i] > start[k]) k++;
    else {
      if (duration[i] > 0 && duration[k] > 0) [halves[i], halves[k]] = [1, 2];
      i++;
      k++;
    }
  }
}

// Top and height of one bar.
function boxOf(state, { block, i, rank, kind }, inset = 0) {
  const [y, height] = state.scales.box(rank, state.style.thin[kind], inset), half = halvesOf(state, block)[i];
  return half ? [y + ((half - 1) * height) / 2, height / 2] : [y, height];
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
  const idle = [], tiny = (state.whole[1] - state.whole[0]) * 1e-9;
  let until = 0;
  for (const i of laneOf(state, block, rank)) {
    if (block.start[i] - until > tiny) idle.push([until, block.start[i]]);
    until = Math.max(until, block.start[i] + block.duration[i]);
  }
  if (block.end - until > tiny) idle.push([until, block.end]);
  return idle;
}
