// A sweep as a table of buttons: a colour and a number each, why it is not there as its title; a click opens it.

function cell(model, row, column) {
  const { text, shade, told, best, over } = model.get("cells");
  const button = document.createElement("button");
  button.textContent = text[row][column];
  button.title = told[row][column];
  button.setAttribute("aria-label", told[row][column].replaceAll("\n", ", "));
  const light = shade[row][column];
  button.classList.toggle("is-out", light === null);
  button.classList.toggle("is-over", over[row][column]);
  button.classList.toggle("is-best", best !== null && best[0] === row && best[1] === column);
  if (light !== null) {
    button.style.background = `color-mix(in oklab, #0a6ebd ${Math.round(100 * light)}%, #e8eef5)`;
    button.style.color = light > 0.75 ? "#ffffff" : "#10161d";
  }
  button.disabled = text[row][column] === "";
  button.addEventListener("click", () => {
    model.set("chosen", [row, column, model.get("chosen").at(2) + 1]);  // the count tells a second click apart
    model.save_changes();
  });
  return button;
}

function heading(text, scope) {
  const th = document.createElement("th");
  th.textContent = text;
  th.scope = scope;
  return th;
}

function draw(model, el) {
  const { rows, columns, title, across, key } = model.get("cells");
  const table = document.createElement("table");
  const told = document.createElement("p"); // a caption would break where the table ends
  told.textContent = title ?? "";
  table.setAttribute("aria-label", title ?? "");
  const head = table.createTHead().insertRow();
  head.append(heading(across ?? "", "col"), ...(columns ?? []).map((name) => heading(name, "col")));
  const body = table.createTBody();
  (rows ?? []).forEach((name, row) => {
    const line = body.insertRow();
    line.append(heading(name, "row"));
    columns.forEach((_, column) => line.insertCell().append(cell(model, row, column)));
  });
  const said = document.createElement("p");
  said.textContent = key ?? "";
  el.replaceChildren(told, table, said);
}

export default {
  render({ model, el }) {
    el.classList.add("pipeline-sweep-table");
    const redraw = () => draw(model, el);
    model.on("change:cells", redraw);
    redraw();
    return () => model.off("change:cells", redraw);
  },
};
