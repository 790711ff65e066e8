"""The picture as one page: as it is on the screen, with zoom, search and hover, without kernel or network."""

from __future__ import annotations

import base64
import json
from string import Template
from typing import Any

from explorer.figures.document import document
from explorer.figures.palette import DARK, LIGHT
from explorer.widgets.timeline import SCRIPT, STYLE_SHEET, Timeline

_OWN = ("_esm", "_css", "frozen")
_STYLE = Template(
    """body { margin: 8px; font: 13px system-ui, sans-serif; color: $light_text; background: $light_paper; }
body[data-jp-theme-light="false"] {
  color: $dark_text; background: $dark_paper; --jp-layout-color1: $dark_paper; --jp-layout-color2: #2a2d33;
  --jp-ui-font-color1: $dark_text; --jp-ui-font-color2: #a9adb5; --jp-border-color2: #50545c;
}
$css"""
)
# the browser's script asks a model for its state; here it is one that never changes
_BODY = Template(
    """<div id="picture"></div>
<script>
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => { document.body.dataset.jpThemeLight = !dark.matches; };
dark.addEventListener("change", follow);
follow();
</script>
<script type="module">
$esm
const read = (value) => {
  if (Array.isArray(value)) return value.map(read);
  if (!value || typeof value !== "object") return value;
  if (typeof value.base64 === "string") {
    return new DataView(Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0)).buffer);
  }
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, read(one)]));
};
const state = read(JSON.parse(document.getElementById("state").textContent));
const model = {
  get: (name) => state[name], set: (name, value) => { state[name] = value; },
  save_changes() {}, send() {}, on() {}, off() {},
};
render({ model, el: document.getElementById("picture"), signal: new AbortController().signal });
</script>
<script id="state" type="application/json">$state</script>"""
)


def picture_page(timeline: Timeline, *, title: str = "Pipeline Explorer") -> str:
    """The page; `title` is plain text."""
    names = [name for name in timeline.trait_names(sync=True) if name not in _OWN and _is_data(getattr(timeline, name))]
    state = {name: _plain(getattr(timeline, name)) for name in names}
    text = json.dumps({**state, "frozen": True}, separators=(",", ":"))
    safe = text.replace("<", "\\u003c")  # so that no text within it ends the script
    papers = {"light_paper": LIGHT.paper, "dark_paper": DARK.paper}
    style = _STYLE.substitute(papers, light_text=LIGHT.text, dark_text=DARK.text, css=STYLE_SHEET)
    return document(title, style=style, body=_BODY.substitute(esm=SCRIPT, state=safe))


def _is_data(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool, list, dict))


def _plain(value: Any) -> Any:
    """`value` with its bytes as base64."""
    if isinstance(value, (bytes, memoryview)):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value
