// The order edited by hand: a bar dragged along its rank, or moved by a key; the kernel answers with a new picture, or
// with the reason why not.

// Where the bar would go if it were let go at `x` of the lanes: the bar it would stand before, and the mark's place.
function insertionAt({ scales, ...state }, bar, x) {
  const { block } = bar, lane = [...laneOf(state, block, bar.rank)], time = scales.time(x);
  const others = lane.filter((i) => i !== bar.i);
  const next = others.findIndex((i) => block.start[i] + block.duration[i] / 2 > time), at = next < 0 ? others.length : next;
  const last = others[others.length - 1], ends = at === others.length;
  const edge = !others.length ? 0 : ends ? block.start[last] + block.duration[last] : block.start[others[at]];
  return { before: ends ? null : others[at], x: scales.x(edge), stays: at === lane.indexOf(bar.i) };
}

const labelOf = (style, { block, kind, i }) => style.letters[kind] + (block.micro_batch[i] === NO_MICRO_BATCH ? "" : block.micro_batch[i]);

// A copy of the bar under the hand, and a mark between the two bars it would go between.
function makeGhost(canvas, state) {
  const ghost = element("div", "pipeline-ghost"), mark = element("div", "pipeline-insertion");
  canvas.after(ghost, mark);
  const show = (bar, shift, where) => {
    const { scales, style } = state, { lanes, lane } = scales, [y, height] = boxOf(state, bar);
    const left = lanes.left + scales.x(bar.block.start[bar.i]) + shift, width = Math.max(bar.block.duration[bar.i] * scales.perMs, 8);
    ghost.textContent = labelOf(style, bar);
    Object.assign(ghost.style, {
      display: "block", left: `${left}px`, width: `${width}px`, top: `${lanes.top + y - 3}px`, height: `${height}px`, lineHeight: `${height}px`,
      background: style.colors[bar.kind], color: style.inks[bar.kind],
    });
    const seen = !where.stays && where.x >= -1 && where.x <= scales.width + 1;
    Object.assign(mark.style, { display: seen ? "block" : "none", left: `${lanes.left + where.x - 2}px`, top: `${lanes.top + bar.rank * lane}px`, height: `${lane}px` });
  };
  return { show, hide: () => [ghost, mark].forEach((one) => { one.style.display = "none"; }) };
}

// Why a move was refused, where it was tried; until the next thing the reader does, or another picture.
function makeVerdict(canvas, state) {
  const box = element("div", "pipeline-tooltip pipeline-verdict");
  canvas.after(box);
  const hide = () => { box.style.display = "none"; };
  const show = (text, { x, rank }) => {
    const { lanes, lane } = state.scales;
    Object.assign(box, { textContent: text });
    box.style.display = "block";
    const most = state.pixels.width - box.offsetWidth - 4;
    Object.assign(box.style, { left: `${Math.max(Math.min(x - box.offsetWidth / 2, most), 4)}px`, top: `${lanes.top + (rank + 1) * lane + 4}px` });
  };
  return { show, hide };
}

function addReorder(canvas, model, state, { selection, speak }, signal) {
  const ghost = makeGhost(canvas, state), verdict = makeVerdict(canvas, state);
  let drag = null, tried = null;
  const ask = (bar, where) => {
    const { lanes } = state.scales, middle = bar.block.start[bar.i] + bar.block.duration[bar.i] / 2;
    tried = { rank: bar.rank, x: drag ? drag.here : lanes.left + state.scales.x(middle) };
    state.ask({ move: { of: nameOf(state, bar.block), row: bar.i, seq: state.seq, ...where } });
  };
  const end = () => { drag = null; ghost.hide(); };
  addGrip(canvas, model, state, {
    begin: (bar, x) => { verdict.hide(); drag = { bar, from: x, here: x, moved: false }; },
    move: (x) => {
      if (!drag) return;
      drag.here = x;
      drag.moved ||= Math.abs(x - drag.from) > STILL;
      if (drag.moved) ghost.show(drag.bar, x - drag.from, (drag.where = insertionAt(state, drag.bar, x - state.scales.lanes.left)));
    },
    drop: () => {
      if (!drag) return;
      if (!drag.moved) selection.pick(drag.bar);
      else if (!drag.where.stays) {
        selection.pick(drag.bar);
        ask(drag.bar, { before: drag.where.before });
      }
      end();
    },
    end,
  }, signal);
  canvas.addEventListener("keydown", (event) => {
    verdict.hide();
    if (event.key === "Escape" && drag) { end(); event.stopImmediatePropagation(); return; }
    const act = model.get("editing") && keyOf(event, state, ask);
    if (!act) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    act();
  }, { capture: true, signal });
  const receive = ({ edited, refused }) => {
    if (edited === undefined) return;
    speak(edited);
    if (refused && tried && state.scales) verdict.show(edited, tried);
    tried = null;
  };
  return { receive, rest: verdict.hide };
}

// The hand on a bar while the order is edited; elsewhere, and with Shift, it does what it always does.
function addGrip(canvas, model, state, { begin, move, drop, end }, signal) {
  const placeOf = (event) => {
    const frame = canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!model.get("editing") || event.button !== 0 || event.shiftKey || !state.scales) return;
    const { x, y } = placeOf(event), { lanes } = state.scales;
    const bar = within(lanes, x, y) ? barAt(state, x - lanes.left, y - lanes.top) : null;
    if (!bar || state.style.thin[bar.kind]) return;
    event.stopImmediatePropagation();
    canvas.setPointerCapture(event.pointerId);
    begin(bar, x);
  }, { capture: true, signal });
  canvas.addEventListener("pointermove", (event) => move(placeOf(event).x), { signal });
  canvas.addEventListener("pointerup", drop, { signal });
  canvas.addEventListener("pointercancel", end, { signal });
}

// What a key does to the order, null if nothing.
function keyOf(event, state, ask) {
  const command = event.ctrlKey || event.metaKey, key = event.key.toLowerCase();
  if (command && key === "z") return () => state.ask(event.shiftKey ? { redo: true } : { undo: true });
  if (command && key === "y") return () => state.ask({ redo: true });
  const by = { arrowleft: -1, arrowright: 1 }[key];
  return event.altKey && by && state.picked && !state.style.thin[state.picked.kind] ? () => ask(state.picked, { by }) : null;
}
