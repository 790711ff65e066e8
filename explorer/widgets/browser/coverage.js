// Bars below pixel size: each pixel column of a lane stacks its kinds, each as high as the share of time it takes.
//
// What a group of bars covers up to a time is known for each bar once its columns are read; a pixel column's share is
// the difference of two such sums, found by bisection. A frame costs as much as there are pixels, not bars.

// (n + 1,): time covered by the bars before each; where bars of one group overlap, it counts once, and where one shares
// the lane with others, it counts as the part of its height.
function sumCovered({ offset, start, duration, n }, { others }) {
  const sums = new Float64Array(n + 1);
  for (let group = 0; group + 1 < offset.length; group++) {
    const end = offset[group + 1];
    for (let i = offset[group], until = -Infinity; i < end; i++) {
      until = Math.max(until, start[i] + duration[i]);
      const next = i + 1 < end ? start[i + 1] : Infinity;
      sums[i + 1] = sums[i] + (Math.min(until, next) - start[i]) / (others[i] + 1);
    }
  }
  return sums;
}

// First index in [low, high) whose value is at least `x`, near `low` as a rule.
function gallop(values, low, high, x) {
  let step = 1;
  while (low + step < high && values[low + step] < x) step *= 2;
  return bisect(values, low, Math.min(low + step, high), x);
}

// Into shares[at …]: how much of each of `width` pixel columns the bars from `begin` to `end` cover, 0 to 1.
function shareOut(shares, at, block, { begin, end, shared }, from, perPixel, width) {
  const { start } = block, { others } = shared, sums = (shared.sums ||= sumCovered(block, shared));
  let i = bisect(start, begin, end, from), next = i < end ? start[i] : Infinity, before = 0;
  let sum = sums[begin], since = 0, rate = 0, most = 0; // covered before the last bar that has begun, and how that one adds to it
  const begun = () => { sum = sums[i - 1]; since = start[i - 1]; rate = 1 / (others[i - 1] + 1); most = sums[i] - sum; };
  if (i > begin) begun();
  for (let x = 0; x <= width; x++) {
    const time = from + x * perPixel;
    if (next < time) {
      i = ++i < end && start[i] < time ? gallop(start, i, end, time) : i;
      next = i < end ? start[i] : Infinity;
      begun();
    }
    const more = (time - since) * rate, covered = sum + (more < most ? more : most);
    if (x) shares[at + x - 1] = (covered - before) / perPixel;
    before = covered;
  }
}

const opaque = ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red;

// A lane one pixel high: its kinds mixed.
function mixColumns(pixels, at, width, shares, kinds, rgb) {
  const nKinds = kinds.length, begins = kinds.map((kind) => kind * width);
  const [reds, greens, blues] = [0, 1, 2].map((part) => kinds.map((kind) => rgb[kind][part]));
  for (let x = 0; x < width; x++) {
    let sum = 0, red = 0, green = 0, blue = 0;
    for (let k = 0; k < nKinds; k++) {
      const share = shares[begins[k] + x];
      sum += share; red += share * reds[k]; green += share * greens[k]; blue += share * blues[k];
    }
    if (sum > 0.003) pixels[at + x] = ((sum < 1 ? sum * 255 : 255) << 24) | ((blue / sum) << 16) | ((green / sum) << 8) | (red / sum);
  }
}

// A lane `rows` pixels high, the kinds of each column on top of each other; a pixel with several of them mixes them.
function stackColumns(pixels, at, width, rows, shares, kinds, rgb) {
  const nKinds = kinds.length, solid = kinds.map((kind) => opaque(rgb[kind])), begins = kinds.map((kind) => kind * width);
  const [reds, greens, blues] = [0, 1, 2].map((part) => kinds.map((kind) => rgb[kind][part]));
  for (let x = 0; x < width; x++) {
    let sum = 0;
    for (let k = 0; k < nKinds; k++) sum += shares[begins[k] + x];
    if (sum < 1e-4) continue;
    const high = sum > 1 ? rows / sum : rows;
    let place = at + x, filled = 0, red = 0, green = 0, blue = 0;
    for (let k = 0; k < nKinds; k++) {
      let left = shares[begins[k] + x] * high;
      while (left > 1e-4) {
        const take = left < 1 - filled ? left : 1 - filled;
        left -= take;
        if (take > 0.9999) { pixels[place] = solid[k]; place += width; continue; }
        filled += take; red += take * reds[k]; green += take * greens[k]; blue += take * blues[k];
        if (filled < 0.9999) continue;
        pixels[place] = (255 << 24) | (blue << 16) | (green << 8) | red;
        place += width;
        filled = red = green = blue = 0;
      }
    }
    if (filled > 0.003) {
      pixels[place] = (filled * 255 << 24) | (blue / filled << 16) | (green / filled << 8) | (red / filled);
    }
  }
}

// The kinds in sight of each lane and of each strip of messages: (rank, thin) → [kind …].
function lanesInSight(block, scales, state) {
  const lanes = new Map();
  eachVisible(block, scales, state, (rank, kind) => {
    const key = 2 * rank + Number(state.style.thin[kind]);
    if (!lanes.has(key)) lanes.set(key, []);
    lanes.get(key).push(kind);
  });
  return lanes;
}

function drawCoverage(pen, block, scales, state, ratio, inset) {
  const width = Math.ceil(scales.width * ratio), height = Math.ceil(scales.lanes.height * ratio);
  const { canvas, image, pixels, shares } = state.raster(width, height);
  const { colors } = state.style, perPixel = 1 / (scales.perMs * ratio), shared = sharedLanes(state, block);
  const filled = new Set(); // rows of pixels that a whole lane has to itself: the next one finds no room there
  pixels.fill(0);
  for (const [key, kinds] of lanesInSight(block, scales, state)) {
    const rank = key >> 1, [y, tall] = scales.box(rank, key & 1, inset);
    const top = Math.min(Math.max(0, Math.round(y * ratio)), height - 1);
    const bottom = Math.min(height, Math.max(top + 1, Math.round((y + tall) * ratio)));
    if (!tall || (bottom === top + 1 && filled.has(top))) continue;
    filled.add(bottom === top + 1 ? top : -1);
    for (const kind of kinds) {
      const group = rank * colors.length + kind, begin = block.offset[group], end = block.offset[group + 1];
      shareOut(shares, kind * width, block, { begin, end, shared }, scales.from, perPixel, width);
    }
    if (bottom === top + 1) mixColumns(pixels, top * width, width, shares, kinds, state.rgb);
    else stackColumns(pixels, top * width, width, bottom - top, shares, kinds, state.rgb);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  pen.drawImage(canvas, 0, 0, width / ratio, height / ratio);
}

// Scratch memory, made anew only when the plot's size changes.
function makeRaster(nKinds) {
  let kept = null;
  return (width, height) => {
    if (!kept || kept.canvas.width !== width || kept.canvas.height !== height) {
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width, height });
      const image = canvas.getContext("2d").createImageData(width, height);
      kept = { canvas, image, pixels: new Uint32Array(image.data.buffer), shares: new Float32Array(width * nKinds) };
    }
    return kept;
  };
}
