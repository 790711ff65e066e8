// The line of numbers above the picture, so that they and the bars they are of come in one paint.

function makeNumber({ name, values, of }) {
  const cell = document.createElement("div"), small = document.createElement("small");
  cell.className = "pipeline-number";
  cell.append(name);
  for (const value of values) {
    const bold = document.createElement("b");
    bold.textContent = value;
    cell.append(document.createElement("br"), bold);
  }
  small.textContent = of;
  cell.append(small);
  return cell;
}

function showNumbers(row, numbers) {
  row.replaceChildren(...numbers.map(makeNumber));
}
