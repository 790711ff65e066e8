// A pen that writes SVG: as much of a canvas's as the picture uses.

class SvgPen {
  constructor() {
    Object.assign(this, { parts: [], clips: 0, path: "", kept: [], move: "", clipped: "" });
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", globalAlpha: 1, lineWidth: 1, font: "", textAlign: "left", textBaseline: "top" });
  }

  save() { this.kept.push([this.move, this.clipped]); }
  restore() { [this.move, this.clipped] = this.kept.pop(); }
  translate(x, y) { this.move += `translate(${near(x)} ${near(y)}) `; }
  rotate(angle) { this.move += `rotate(${near((angle * 180) / Math.PI)}) `; }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${near(x)} ${near(y)}`; }
  lineTo(x, y) { this.path += `L${near(x)} ${near(y)}`; }
  rect(x, y, width, height) { this.path += `M${near(x)} ${near(y)}h${near(width)}v${near(height)}h${near(-width)}z`; }
  fill() { this.add("path", { d: this.path, fill: this.fillStyle }); }
  stroke() { this.add("path", { d: this.path, fill: "none", ...this.line() }); }
  line() { return { stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-linejoin": "round" }; }
  fillRect(x, y, width, height) { this.add("rect", { ...box(x, y, width, height), fill: this.fillStyle }); }
  strokeRect(x, y, width, height) { this.add("rect", { ...box(x, y, width, height), fill: "none", ...this.line() }); }
  drawImage(canvas, x, y, width, height) { this.add("image", { ...box(x, y, width, height), href: canvas.toDataURL(), preserveAspectRatio: "none" }); }
  fillText(text, x, y) { this.add("text", { ...this.letters(x, y), fill: this.fillStyle }, text); }
  strokeText(text, x, y) { this.add("text", { ...this.letters(x, y), fill: "none", ...this.line() }, text); }

  clip() {
    const id = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"${this.move && ` transform="${this.move}"`}/></clipPath>`);
    this.clipped = id;
  }

  letters(x, y) {
    const [, weight = "400", size, family] = /^(?:(\d+) )?([\d.]+px) (.*)$/.exec(this.font) || [];
    const anchor = { center: "middle", right: "end", left: "start" }[this.textAlign];
    const baseline = { middle: "central", top: "hanging" }[this.textBaseline];
    return { x: near(x), y: near(y), "font-weight": weight, "font-size": size, "font-family": family, "text-anchor": anchor, "dominant-baseline": baseline };
  }

  add(name, attributes, text = "") {
    const all = { ...attributes, ...(this.globalAlpha < 1 && { opacity: near(this.globalAlpha) }), ...(this.move && { transform: this.move }) };
    const written = Object.entries(all).map(([key, value]) => `${key}="${escaped(String(value))}"`).join(" ");
    const made = `<${name} ${written}>${escaped(text)}</${name}>`;
    this.parts.push(this.clipped ? `<g clip-path="url(#${this.clipped})">${made}</g>` : made); // clips are in the page's units
  }

  text(width, height, title) {
    const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}><title>${escaped(title)}</title>\n${this.parts.join("\n")}\n</svg>\n`;
  }
}

const near = (value) => Math.round(value * 100) / 100;
const box = (x, y, width, height) => ({ x: near(x), y: near(y), width: near(width), height: near(height) });
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
