// The keyboard: moving in time and from bar to bar, and a list of the keys.

const KEYS = [
  ["← →", "move in time; with a bar selected, to the one before or after it on its rank"],
  ["↑ ↓", "to the bar of the rank above or below; the first selects one"],
  ["Shift ← →", "move in time"],
  ["+ −", "zoom in, zoom out"],
  ["0 or f", "show all"],
  ["n N", "next, previous idle interval of the rank"],
  ["z", "zoom to what is selected"],
  ["/", "find a micro-batch"],
  ["Enter", "details of the selected bar or idle interval"],
  ["Esc", "close, then unselect, then end the search"],
  ["Alt ← →", "while the order is edited: move the selected bar on its rank"],
  ["Ctrl Z, Ctrl Shift Z", "undo, redo what was edited"],
  ["?", "this list"],
  ["click · Shift drag", "select a bar · select a stretch of time on some ranks"],
];

function makeHelp() {
  const help = element("div", "pipeline-help"); // JupyterLab has rules of its own for lists
  help.hidden = true;
  for (const words of KEYS.flat()) help.append(Object.assign(element("span", ""), { textContent: words }));
  return help;
}

// From the selected bar by so many along its rank.
function stepAlong(state, by) {
  const { block, i, rank } = state.picked, lane = laneOf(state, block, rank);
  const at = lane.indexOf(i), near = at < 0 ? placeAt(block, lane, block.start[i]) : at + by;
  return near >= 0 && near < lane.length ? barOf(state, block, lane[near]) : null;
}

// The bar at the same time on another rank; without one selected, the first in sight on rank 0.
function stepAcross(state, by) {
  const block = (state.picked && state.picked.block) || shownBlock(state);
  const [rank, time] = state.picked
    ? [state.picked.rank + by, block.start[state.picked.i] + block.duration[state.picked.i] / 2]
    : [state.region ? state.region.ranks[0] : 0, Math.max(state.range[0], 0)];
  if (rank < 0 || rank >= state.nRanks) return null;
  const lane = laneOf(state, block, rank), at = placeAt(block, lane, time);
  return at < 0 ? null : barOf(state, block, lane[at]);
}

// The next idle interval of the rank, or the one before, as a region; null where there is no other.
function nextIdle(state, by) {
  const { picked, region } = state, block = shownBlock(state);
  const rank = picked ? picked.rank : region ? region.ranks[0] : 0;
  const idle = idleOf(state, block, rank);
  const time = picked ? picked.block.start[picked.i] : region ? region.from : by > 0 ? -Infinity : Infinity;
  const next = by > 0 ? idle.find(([from]) => from > time) : idle.findLast(([from]) => from < time);
  return next ? { from: next[0], to: next[1], ranks: [rank, rank] } : null;
}

function addKeyboard(canvas, state, { zoom, selection, search, card, help }, signal) {
  const pick = (bar) => {
    if (!bar) return;
    selection.pick(bar);
    zoom.reveal(bar.block.start[bar.i], bar.block.start[bar.i] + bar.block.duration[bar.i]);
  };
  const along = (by) => (state.picked ? pick(stepAlong(state, by)) : zoom.by(by * 0.15));
  const idle = (by) => {
    const region = nextIdle(state, by);
    if (!region) return;
    const why = gapText(state, region.ranks[0], region.from);
    const words = `idle on rank ${region.ranks[0]} for ${inMs(region.to - region.from)}`;
    selection.choose(region, `${words}. ${why}`);
    card.tell(region, why ? `${words}\n${why}` : words);
    zoom.reveal(region.from, region.to);
  };
  const closer = () => {
    const { picked, region } = state;
    const [from, to] = picked ? [picked.block.start[picked.i], picked.block.start[picked.i] + picked.block.duration[picked.i]]
      : region ? [region.from, region.to] : state.range;
    zoom.show([from - (to - from) * 0.05, to + (to - from) * 0.05]);
  };
  const toggleHelp = () => { help.hidden = !help.hidden; };
  const escape = () => {
    if (!help.hidden) toggleHelp();
    else if (!card.close() && !selection.clear()) search.clear();
  };
  const actions = {
    ArrowLeft: (event) => (event.shiftKey ? zoom.by(-0.15) : along(-1)),
    ArrowRight: (event) => (event.shiftKey ? zoom.by(0.15) : along(1)),
    ArrowUp: () => pick(stepAcross(state, -1)), ArrowDown: () => pick(stepAcross(state, 1)),
    Home: zoom.all, 0: zoom.all, f: zoom.all, "+": () => zoom.around(0.6), "=": () => zoom.around(0.6), "-": () => zoom.around(1 / 0.6),
    n: () => idle(1), N: () => idle(-1), z: closer, "/": search.focus, Enter: card.toggle, "?": toggleHelp, Escape: escape,
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key] || !shownBlock(state) || !state.scales) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key](event);
  }, { signal });
  return { toggleHelp };
}

// Details of the selected bar, or of the idle interval that was gone to, beside it.
function makeCard(canvas, state) {
  const card = element("div", "pipeline-tooltip pipeline-card");
  canvas.after(card);
  let open = false, idle = null;
  const subject = () => {
    const { picked, region } = state;
    if (picked) return { text: describeMarked(state, picked), start: picked.block.start[picked.i], rank: picked.rank };
    return idle && idle.region === region ? { text: idle.text, start: region.from, rank: region.ranks[0] } : null;
  };
  const place = () => {
    const { scales } = state, about = scales && subject();
    open &&= Boolean(about);
    card.style.display = open ? "block" : "none";
    if (!open) return;
    card.textContent = about.text;
    const x = scales.lanes.left + Math.max(Math.min(Math.max(scales.x(about.start), 0), scales.width - card.offsetWidth), 0);
    Object.assign(card.style, { left: `${x}px`, top: `${scales.lanes.top + (about.rank + 1) * scales.lane + 4}px` });
  };
  return {
    place,
    tell: (region, text) => { idle = { region, text }; open = true; place(); },
    toggle: () => { open = !open; place(); },
    close: () => { const was = open; open = false; place(); return was; },
  };
}
