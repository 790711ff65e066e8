// Legends as buttons: what is not pressed is not drawn.

function isHidden(state, sort, place) {
  return state.hidden.has(`${sort} ${place}`);
}

function makeKey({ text, color, tile, cross }, sort) {
  const key = document.createElement("button"), swatch = document.createElement("i");
  key.type = "button";
  key.className = "pipeline-key";
  key.dataset.sort = sort;
  if (cross) swatch.textContent = "✕";
  else swatch.style.background = tile ? `url(${tile})` : color;
  key.append(swatch, text);
  return key;
}

// A row of keys for one sort of thing; it is made anew only when other things are drawn.
function makeLegend(sort, state, toggled) {
  const row = document.createElement("div");
  let shown = "", keys = [];
  row.className = "pipeline-legend";
  row.setAttribute("role", "group");
  const show = () => keys.forEach(({ key, place }) => key.setAttribute("aria-pressed", !isHidden(state, sort, place)));
  const toggle = (place) => {
    const name = `${sort} ${place}`;
    if (!state.hidden.delete(name)) state.hidden.add(name);
    toggled();
  };
  const isolate = (place) => {
    const others = keys.map((key) => key.place).filter((other) => other !== place);
    const alone = others.every((other) => isHidden(state, sort, other));
    for (const other of others) state.hidden[alone ? "delete" : "add"](`${sort} ${other}`);
    state.hidden.delete(`${sort} ${place}`);
    toggled();
  };
  // entries: { place, text, color }, where it has stripes `tile`, and where it is no colour but a cross, `cross`
  const update = (entries) => {
    if (JSON.stringify(entries) !== shown) {
      shown = JSON.stringify(entries);
      keys = entries.map((entry) => {
        const key = makeKey(entry, sort), { place } = entry;
        key.title = "Click: show or hide. Double click: show nothing else.";
        key.addEventListener("click", (event) => (event.detail === 2 ? isolate(place) : event.detail < 2 && toggle(place)));
        return { key, place };
      });
      row.replaceChildren(...keys.map(({ key }) => key));
    }
    show();
  };
  return { row, update };
}

function kindEntries(state) {
  const { keys, keyColors } = state.style;
  return state.kinds.map((place) => ({ place, text: keys[place], color: keyColors[place] }));
}

function rankEntries(state) {
  const { lines } = state.style;
  return state.lines.ranks.map((rank, place) => ({ place, text: `rank ${rank}`, color: lines[place % lines.length] }));
}
