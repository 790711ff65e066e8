"""The one place for colours and letters; plain data, so that charts drawn elsewhere look the same.

Hues follow Okabe and Ito, shifted in lightness until each stands out on white and on JupyterLab's dark #111 alike,
and until F, B, I and W stay apart under protanopia, deuteranopia and tritanopia. Colour is never the only sign: bars
carry letters too.

Source: Okabe & Ito 2008, Color Universal Design, jfly.uni-koeln.de/color.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from explorer.core import Category, Kind

KIND_COLORS: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.F: "#0a6ebd",
        Kind.B: "#c94f0a",
        Kind.I: "#db9a00",
        Kind.W: "#0fa574",
        Kind.R: "#c06fa0",
        # a message is a paler sister of the pass it serves
        Kind.SEND_F: "#4f97cf",
        Kind.RECV_F: "#4f97cf",
        Kind.SEND_B: "#d9824f",
        Kind.RECV_B: "#d9824f",
        Kind.G: "#7b6a54",
        Kind.U: "#868c96",
    }
)

# of text upon a bar of that kind: whichever of the two contrasts more
KIND_INKS: Mapping[Kind, str] = MappingProxyType(
    {kind: "#ffffff" if kind in (Kind.F, Kind.B, Kind.G) else "#000000" for kind in Kind}
)

KIND_LETTERS: Mapping[Kind, str] = MappingProxyType(
    {
        **{kind: kind.name for kind in (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R, Kind.G, Kind.U)},
        **dict.fromkeys((Kind.SEND_F, Kind.RECV_F), "→"),
        **dict.fromkeys((Kind.SEND_B, Kind.RECV_B), "←"),
    }
)

KIND_TITLES: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.F: "forward",
        Kind.B: "backward",
        Kind.I: "backward for inputs",
        Kind.W: "backward for weights",
        Kind.R: "recompute",
        Kind.SEND_F: "activation sent",
        Kind.RECV_F: "activation received",
        Kind.SEND_B: "gradient sent",
        Kind.RECV_B: "gradient received",
        Kind.G: "gradient reduction",
        Kind.U: "optimizer",
    }
)

CATEGORY_COLORS: Mapping[Category, str] = MappingProxyType(
    {
        Category.PARAMETERS: "#868c96",
        Category.GRADIENTS: "#c06fa0",
        Category.OPTIMIZER: "#7b6a54",
        Category.ACTIVATIONS: "#0a6ebd",
        Category.WEIGHT_GRADIENTS: "#0fa574",
        Category.RECEIVE_BUFFERS: "#db9a00",
    }
)


class CauseLook(NamedTuple):
    """How idle time of one cause looks: causes of one family share a colour, and differ in stripes and letter.

    Attributes:
        title: in words.
        letter: small, where kinds have capitals.
        color: of the stripes, and fainter of the ground.
        pattern: which stripes: a slash, either way, bars - and |, crosses + and x, or dots.
    """

    title: str
    letter: str
    color: str
    pattern: str


_STRUCTURE, _WORK, _MESSAGES = "#626468", "#e1549a", "#8d4cbf"

# by the names that `idle_causes` gives
CAUSE_LOOKS: Mapping[str, CauseLook] = MappingProxyType(
    {
        "fill": CauseLook("the pipeline fills", "f", _STRUCTURE, "/"),
        "drain": CauseLook("the pipeline drains", "d", _STRUCTURE, "\\"),
        "upstream": CauseLook("waits for another rank", "u", _STRUCTURE, "-"),
        "order": CauseLook("its own order", "o", "#9ea71e", "|"),
        "imbalance": CauseLook("a heavier stage", "i", _WORK, "x"),
        "straggler": CauseLook("a slow rank", "s", _WORK, "/"),
        "hiccup": CauseLook("one slow action", "!", _WORK, "."),
        "memory": CauseLook("memory limit", "m", "#b3571e", "+"),
        "queue": CauseLook("message in a queue", "q", _MESSAGES, "-"),
        "latency": CauseLook("latency", "l", _MESSAGES, "/"),
        "bandwidth": CauseLook("bandwidth", "b", _MESSAGES, "|"),
        "host": CauseLook("the host", "h", "#1fabc6", "x"),
    }
)

MARK = "#c94f0a"  # a limit, or the one among many that is meant
MORE, LESS, WHOLE = "#c94f0a", "#0fa574", "#868c96"  # what a part adds or takes, and the whole it does so to
LANES, LEFT_OUT = "rgba(128,128,128,0.16)", "rgba(128,128,128,0.22)"  # behind bars; of cells that do not count

# lines of a few ranks in one chart
RANK_COLORS: tuple[str, ...] = ("#0a6ebd", "#c94f0a", "#0fa574", "#c06fa0", "#db9a00", "#7b6a54", "#4f97cf", "#868c96")

_MANY_RANKS = ((10, 110, 189), (15, 165, 116), (219, 154, 0), (201, 79, 10))  # from the first rank to the last


def rank_color(rank: int, n_ranks: int) -> str:
    """The colour of a rank's line: one of a few distinct ones, or for many ranks a place on a gradient."""
    if n_ranks <= len(RANK_COLORS):
        return RANK_COLORS[rank]
    place = rank / (n_ranks - 1) * (len(_MANY_RANKS) - 1)
    left = min(int(place), len(_MANY_RANKS) - 2)
    mixed = (a + (b - a) * (place - left) for a, b in zip(_MANY_RANKS[left], _MANY_RANKS[left + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


@dataclass(frozen=True)
class Theme:
    """Colours of what is not data.

    Attributes:
        text: titles, labels, ticks.
        grid: grid lines and outlines.
        idle: the lane behind the bars.
        paper: the page.
    """

    text: str
    grid: str
    idle: str
    paper: str


LIGHT = Theme(text="#24292f", grid="#e1e4e8", idle="#f4f5f7", paper="#ffffff")
DARK = Theme(text="#d9dce1", grid="#34383f", idle="#1c1f24", paper="#111111")
# where the page's colour is not known: as far from white as from #111
EITHER = Theme(text="#7b7f86", grid="rgba(128,128,128,0.25)", idle="rgba(128,128,128,0.08)", paper="rgba(0,0,0,0)")
