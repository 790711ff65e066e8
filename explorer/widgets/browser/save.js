// Saving the picture: PNG and SVG are drawn here, what holds numbers comes from the kernel.

const HEADER = 30; // pixels for the legend above the picture

function makeSave(model, state, speak) {
  const list = element("div", "pipeline-saves"), open = (show) => { list.hidden = !show; button.setAttribute("aria-expanded", show); };
  const button = makeButton("Save", "Save the picture or its numbers", () => open(list.hidden));
  const kinds = [["PNG", () => savePng(state, model)], ["SVG", () => saveSvg(state, model)]];
  if (!model.get("frozen")) {
    for (const kind of ["HTML", "CSV", "JSON"]) kinds.push([kind, () => model.send({ save: kind.toLowerCase() })]);
  }
  for (const [kind, save] of kinds) {
    list.append(makeButton(kind, `Save as ${kind}`, () => { open(false); if (state.scales) save(); speak(`saving as ${kind}`); }));
  }
  open(false);
  const receive = ({ saved, text, type }) => saved && download(saved, new Blob([text], { type }));
  const box = element("span", "pipeline-save", button, list);
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") { open(false); button.focus(); } });
  return { box, receive };
}

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const MOST_KEYED = 8; // ranks whose lines' colours are told

function sheetEntries(state) {
  const ranks = rankEntries(state);
  return [...kindEntries(state), ...causeEntries(state), ...markEntries(state), ...(ranks.length <= MOST_KEYED ? ranks : [])];
}

// The picture with its paper and legend, by any pen.
function drawSheet(pen, state, ratio) {
  const { width, height } = state.pixels, theme = themeOf(state);
  pen.fillStyle = theme.paper;
  pen.fillRect(0, 0, width, height + HEADER);
  pen.font = "12px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  let x = state.scales.lanes.left;
  for (const { text, color, cross } of sheetEntries(state)) {
    pen.fillStyle = color;
    if (cross) drawCross(pen, x + 6, HEADER / 2, 5, theme);
    else pen.fillRect(x, HEADER / 2 - 6, 12, 12);
    pen.fillStyle = theme.text;
    pen.fillText(text, x + 17, HEADER / 2);
    x += 32 + text.length * 6.6;
  }
  pen.save();
  pen.translate(0, HEADER);
  drawPicture(pen, state, ratio);
  pen.restore();
}

function savePng(state, model) {
  const canvas = document.createElement("canvas"), ratio = Math.max(2, window.devicePixelRatio || 1), { width, height } = state.pixels;
  const pen = cleanPen(canvas, { width, height: height + HEADER }, ratio, themeOf(state).paper);
  drawSheet(pen, state, ratio);
  canvas.toBlob((blob) => download(`${model.get("name")}.png`, blob));
}

function saveSvg(state, model) {
  const pen = new SvgPen(), { width, height } = state.pixels;
  drawSheet(pen, state, 2);
  download(`${model.get("name")}.svg`, new Blob([pen.text(width, height + HEADER, model.get("label"))], { type: "image/svg+xml" }));
}
