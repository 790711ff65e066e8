// Packed columns, and finding what is visible in them.

const NO_MICRO_BATCH = 65535;

// ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────

const ARRAYS = {
  float64: Float64Array, float32: Float32Array, uint32: Uint32Array, uint16: Uint16Array, uint8: Uint8Array,
};

// A buffer may begin anywhere within its message; typed arrays must not.
function readColumn({ dtype, data }) {
  return new ARRAYS[dtype](data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
}

// Where another value begins, and which; where those are differences, they add up within each group. Or a whole column.
function readRuns(packed, offset) {
  if (packed.data) return readColumn(packed);
  const column = fillRuns(readColumns(packed, ["at", "value"]), offset[offset.length - 1]);
  if (packed.sums) addUp(column, offset);
  if (packed.per_ms) for (let i = 0; i < column.length; i++) column[i] /= packed.per_ms;
  return column;
}

function addUp(column, offset) {
  for (let group = 0; group + 1 < offset.length; group++) {
    const end = offset[group + 1];
    for (let i = offset[group], sum = 0; i < end; i++) column[i] = sum += column[i]; // 16 bits wrap as they did in the kernel
  }
}

function fillRuns({ at, value }, n) {
  const column = new value.constructor(n);
  for (let run = 0; run < at.length; run++) column.fill(value[run], at[run], run + 1 < at.length ? at[run + 1] : n);
  return column;
}

function readBlock(packed) {
  if (!packed || !packed.n) return null;
  const offset = readColumn(packed.offset), names = ["start", "duration", "wait", "stage", "micro_batch", "origin"];
  const columns = Object.fromEntries(names.map((name) => [name, readRuns(packed[name], offset)]));
  return { n: packed.n, longest: packed.longest, end: packed.end, offset, ...columns };
}

function readColumns(packed, names) {
  return Object.fromEntries(names.map((name) => [name, readColumn(packed[name])]));
}

// First index in [low, high) whose value is at least `x`.
function bisect(values, low, high, x) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

// ── which bars are visible ───────────────────────────────────────────────────────────────────────────────────────

// Calls visit(rank, kind, first, beyond) for each (rank, kind) with bars in sight; returns how many bars those are.
function eachVisible(block, scales, state, visit) {
  const nKinds = state.style.colors.length;
  let count = 0;
  for (let rank = 0; rank < state.nRanks; rank++) {
    for (let kind = 0; kind < nKinds; kind++) {
      if (isHidden(state, "kind", state.style.legend[kind])) continue;
      const group = rank * nKinds + kind;
      const begin = block.offset[group], end = block.offset[group + 1];
      if (begin === end) continue;
      const first = bisect(block.start, begin, end, scales.from - block.longest);
      const beyond = bisect(block.start, first, end, scales.to);
      if (first < beyond) visit(rank, kind, first, beyond);
      count += beyond - first;
    }
  }
  return count;
}

function hasMessages(block, style) {
  if (!block) return false;
  for (let group = 0; group + 1 < block.offset.length; group++) {
    if (style.thin[group % style.colors.length] && block.offset[group] < block.offset[group + 1]) return true;
  }
  return false;
}
