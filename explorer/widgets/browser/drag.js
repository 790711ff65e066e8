// The hand on the lanes: a drag moves, with Shift it chooses a stretch of time on some ranks; a click chooses a bar.

const STILL = 4; // pixels within which a press is a click

function addDrag(canvas, state, zoom, selection, signal) {
  let drag = null;
  const band = element("div", "pipeline-band");
  canvas.after(band);
  const placeOf = (event) => {
    const frame = canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !state.scales) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { ...placeOf(event), range: state.range, choose: event.shiftKey };
  }, { signal });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const here = placeOf(event);
    if (drag.choose) return showBand(band, state, drag, here);
    zoom.show(drag.range.map((time) => time - (here.x - drag.x) / state.scales.perMs));
  }, { signal });
  const end = () => { drag = null; band.style.display = "none"; };
  canvas.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const here = placeOf(event), { lanes } = state.scales;
    const moved = Math.hypot(here.x - drag.x, here.y - drag.y) > STILL;
    if (drag.choose && moved) selection.choose(regionOf(state, drag, here));
    else if (!moved && within(lanes, here.x, here.y)) selection.pick(barAt(state, here.x - lanes.left, here.y - lanes.top));
    end();
  }, { signal });
  canvas.addEventListener("pointercancel", end, { signal });
  canvas.addEventListener("dblclick", zoom.all, { signal });
}

// The stretch of time and the ranks between two corners on the canvas.
function regionOf({ scales, nRanks, whole }, one, other) {
  const times = [one.x, other.x].map((x) => Math.min(Math.max(scales.time(x - scales.lanes.left), whole[0]), whole[1]));
  const ranks = [one.y, other.y].map((y) => Math.min(Math.max(Math.floor((y - scales.lanes.top) / scales.lane), 0), nRanks - 1));
  const [[from, to], [first, last]] = [times, ranks].map((pair) => pair.sort((a, b) => a - b));
  return { from, to, ranks: [first, last] };
}

function showBand(band, state, one, other) {
  const { lanes, lane } = state.scales, { ranks: [first, last] } = regionOf(state, one, other);
  Object.assign(band.style, {
    display: "block", left: `${Math.min(one.x, other.x)}px`, width: `${Math.abs(other.x - one.x)}px`,
    top: `${lanes.top + first * lane}px`, height: `${(last + 1 - first) * lane}px`,
  });
}
