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

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// The cells stay while the same measures are shown: new ones would have the page laid out anew for each picture.
function showNumbers(row, numbers) {
  const shape = JSON.stringify(numbers.map(({ name, values }) => [name, values.length]));
  if (row.dataset.shape !== shape) {
    row.dataset.shape = shape;
    row.replaceChildren(...numbers.map(makeNumber));
    return;
  }
  numbers.forEach(({ values, of }, n) => {
    const cell = row.children[n];
    cell.querySelectorAll("b").forEach((bold, place) => setText(bold, values[place]));
    setText(cell.querySelector("small"), of);
  });
}
