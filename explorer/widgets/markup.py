"""Tables with bars in them, as HTML; whatever is written goes through `escape` here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """A coloured part of a bar.

    Attributes:
        share: of the bar's whole width, 0 to 1.
        color: as style sheets write it.
        letter: in it, where it is wide enough.
        title: what the pointer is told.
    """

    share: float
    color: str
    letter: str = ""
    title: str = ""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


_WIDE = 0.045  # of the width, what a letter needs


def escape(text: object) -> Markup:
    """`text` as HTML that shows it."""
    return text if isinstance(text, Markup) else Markup(html.escape(str(text)))


def element(name: str, *inner: object, kind: str = "") -> Markup:
    """An element with this class and content."""
    of = f' class="pipeline-{kind}"' if kind else ""
    return Markup(f"<{name}{of}>{''.join(map(escape, inner))}</{name}>")


def bar(parts: Iterable[Part]) -> Markup:
    """Parts side by side; what is left of the width stays empty."""
    return element("div", *map(_part, parts), kind="bar")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str) -> Markup:
    """A table; a reader of the screen is told its caption."""
    head = element("tr", *(Markup(f'<th scope="col">{escape(name)}</th>') for name in heads))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("table", element("caption", caption), element("thead", head), element("tbody", *body), kind="table")


def chip(letter: str, color: str) -> Markup:
    """The key of a colour, with its letter."""
    return Markup(f'<span class="pipeline-chip" style="background:{escape(color)}">{escape(letter)}</span>')


def _part(part: Part) -> Markup:
    letter = part.letter if part.share >= _WIDE else ""
    style = f"width:{100 * max(part.share, 0.0):.3f}%;background:{escape(part.color)}"
    return Markup(f'<span style="{style}" title="{escape(part.title)}">{escape(letter)}</span>')
