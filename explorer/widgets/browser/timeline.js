// A pipeline timeline and its memory row on one canvas, with the numbers above and legends around it.
//
// Columns come sorted by (lane, kind, start), so what is visible is found by bisection, at whatever stretch of time.

function makeState(model) {
  const style = model.get("look");
  const rgbOf = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return {
    style, rgb: style.colors.map(rgbOf), lineColors: style.lines.map(rgbOf).map(opaque), hidden: new Set(model.get("hidden")), sent: {}, pixels: null, scales: null, picked: null, region: null, found: null, marks: [], painted: [], ask: (what) => model.send(what),
    raster: makeRaster(style.colors.length), stripRaster: makeRaster(style.colors.length), lineRaster: makeRaster(0),
  };
}

// Takes over what of the frame is new; a column that was not sent again is the same object.
function readFrame(model, state) {
  const { n_ranks: nRanks, whole, top, title, kinds, home } = model.get("view"), zoom = model.get("zoom");
  Object.assign(state, { nRanks, whole, top, title, kinds, further: furtherStages(home || []), marks: model.get("marks"), range: zoom.length ? state.chosen || zoom : whole });
  for (const [name, read] of [["predicted", readBlock], ["measured", readBlock], ["lines", readLines], ["gaps", readGaps]]) {
    const packed = model.get(name);
    if (state.sent[name] === packed) continue;
    state.sent[name] = packed;
    state[name] = read(packed);
  }
  state.messages = [state.predicted, state.measured].some((block) => hasMessages(block, state.style));
}

// To each answer JupyterLab shows the kernel busy, then idle, which takes the page as long as a picture.
const REST = 250; // ms between two answers while a run streams
const RESTED = 200; // ms after which a picture that no other has followed is answered
const UNTOLD = 4; // pictures that may go by without an answer; the kernel sends some more before it waits for one

// Right behind the next paint; a timer would stand in line behind what JupyterLab does about the kernel being busy.
function afterPaint(then) {
  const next = globalThis.scheduler?.postTask ? () => scheduler.postTask(then, { priority: "user-blocking" }) : () => setTimeout(then);
  requestAnimationFrame(next);
}

// Tells the kernel which frame can be seen: with others of a run every now and then, else once the hand rests.
function makeAcknowledge(model, el, signal) {
  let last = -Infinity, told = 0, waiting = 0;
  const tell = () => {
    clearTimeout(waiting);
    waiting = 0;
    last = performance.now();
    told = Number(el.dataset.paintedSeq);
    model.set("painted", told);
    model.save_changes();
  };
  signal.addEventListener("abort", () => clearTimeout(waiting));
  return (seq, live) => afterPaint(() => {
    if (signal.aborted) return;
    el.dataset.paintedSeq = seq;
    if (!live) clearTimeout(waiting);
    const rest = live ? last + REST - performance.now() : model.get("explain") || !told || seq - told >= UNTOLD ? 0 : RESTED;
    if (rest <= 0) tell();
    else if (!live || !waiting) waiting = setTimeout(tell, rest);
  });
}

// Paints at most once for each frame of the screen.
function makeRepaint(canvas, state, el) {
  let queued = false;
  return () => {
    if (!queued) requestAnimationFrame(() => { queued = false; paint(canvas, state, el); });
    queued = true;
  };
}

// The size when it was last seen stays while the page hides it, as JupyterLab does for a change of theme.
function followSize(canvas, state, el, signal) {
  const observer = new ResizeObserver(([{ contentRect: { width, height } }]) => {
    if (!width) return;
    state.pixels = { width, height };
    paint(canvas, state, el);
  });
  observer.observe(canvas);
  signal.addEventListener("abort", () => observer.disconnect());
}

function followTheme(repaint, signal) {
  const observer = new MutationObserver(repaint);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  signal.addEventListener("abort", () => observer.disconnect());
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...children);
  return made;
}

// A line that only screen readers see.
function makeSpeech() {
  const line = element("div", "pipeline-spoken");
  line.setAttribute("aria-live", "polite");
  return { line, speak: (text) => { line.textContent = text; } };
}

// All parts of the picture, in their places.
function build(model, el, state, signal) {
  const canvas = element("canvas", "pipeline-canvas"), { line, speak } = makeSpeech(), help = makeHelp();
  const repaint = makeRepaint(canvas, state, el), zoom = makeZoom(model, state, repaint, signal);
  const selection = makeSelection(model, state, repaint, speak, signal);
  const reveal = ({ block, i }) => zoom.reveal(block.start[i], block.start[i] + block.duration[i]);
  const search = makeSearch(model, state, selection, reveal, repaint, speak), save = makeSave(model, state, speak);
  const plots = element("div", "pipeline-plots", canvas), overview = makeOverview(state, zoom, signal), card = makeCard(canvas, state);
  const { toggleHelp } = addKeyboard(canvas, state, { zoom, selection, search, card, help }, signal);
  const toggled = () => {
    for (const [legend, entries] of legends) legend.update(entries(state));
    model.set("hidden", [...state.hidden]);
    model.save_changes();
    search.look();
    repaint();
  };
  const sorts = [["kind", kindEntries], ["cause", causeEntries], ["mark", markEntries], ["rank", rankEntries]];
  const legends = sorts.map(([sort, entries]) => [makeLegend(sort, state, toggled), entries]);
  const [kinds, causes, marks, ranks] = legends.map(([{ row }]) => row);
  const numbers = element("div", "pipeline-numbers"), note = element("div", "pipeline-note");
  const why = makeButton("Why idle?", "Colour idle time by its cause", () => {
    model.set("explain", !model.get("explain"));
    model.save_changes();
    why.setAttribute("aria-pressed", model.get("explain"));
  });
  why.hidden = model.get("frozen");
  why.setAttribute("aria-pressed", model.get("explain"));
  const question = makeButton("?", "Keys (key ?)", toggleHelp);
  const tools = element("div", "pipeline-tools", search.box, why, ...makeButtons(zoom), save.box, question);
  const head = element("div", "pipeline-head", element("div", "pipeline-legends", kinds, causes, marks), tools);
  el.append(numbers, head, plots, overview.box, element("div", "pipeline-foot", note, ranks), help, line);
  state.painted.push(overview.update, card.place);
  addHover(canvas, state, signal);
  addDrag(canvas, state, zoom, selection, signal);
  const reorder = addReorder(canvas, model, state, { selection, speak }, signal);
  addWheel(canvas, el, state, zoom, signal);
  followSize(canvas, state, el, signal);
  followTheme(() => { state.ground = null; repaint(); }, signal);
  return { canvas, numbers, note, legends, selection, search, save, reorder };
}

function makeFocusable(canvas, el) {
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application"); // its keys are its own
  canvas.setAttribute("aria-roledescription", "pipeline timeline");
  el.dataset.lmSuppressShortcuts = "true"; // JupyterLab leaves our keys alone
  el.classList.add("pipeline-timeline");
  el.setAttribute("role", "figure");
}

function render({ model, el, signal }) {
  const state = makeState(model);
  const { canvas, numbers, note, legends, selection, search, save, reorder } = build(model, el, state, signal);
  const acknowledge = makeAcknowledge(model, el, signal);
  makeFocusable(canvas, el);

  const show = () => {
    state.seq = model.get("seq");
    readFrame(model, state);
    reorder.rest();
    selection.restore();
    search.look();
    paint(canvas, state, el); // before words change: a pen that is told its font has the page's styles brought up to date
    showNumbers(numbers, model.get("numbers"));
    setText(note, model.get("note"));
    for (const [legend, entries] of legends) legend.update(entries(state));
    acknowledge(state.seq, model.get("view").live);
  };
  const listen = (event, react) => {
    model.on(event, react);
    signal.addEventListener("abort", () => model.off(event, react));
  };
  const follow = (name, react) => { listen(`change:${name}`, react); react(); };
  follow("label", () => [el, canvas].forEach((one) => one.setAttribute("aria-label", model.get("label"))));
  follow("stale", () => { el.dataset.stale = model.get("stale"); });
  follow("seq", show);
  listen("change:note", () => setText(note, model.get("note")));
  listen("change:gaps", () => { if (state.seq === model.get("seq")) show(); }); // else they come with the next frame
  listen("msg:custom", (said) => {
    if (said.sentence !== undefined && state.gaps) state.gaps.sentences[said.sentence] = said.text;
    save.receive(said);
    reorder.receive(said);
  });
}

export default { render };
