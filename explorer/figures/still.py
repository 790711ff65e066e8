"""A timeline as SVG made here: no browser, no script; what a saved notebook shows where no kernel is."""

from __future__ import annotations

import base64
import html
import struct
import zlib

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Mark, Trace
from explorer.core.events import Stream
from explorer.figures.lanes import Share, shared_lanes
from explorer.figures.palette import EITHER, KIND_COLORS, KIND_INKS, KIND_LETTERS, KIND_TITLES, LIGHT
from explorer.figures.units import Unit, time_unit
from explorer.figures.words import check_trace, title_of

_LEFT, _TOP, _WIDTH, _BELOW = 64.0, 50.0, 900.0, 34.0  # pixels
_LANE, _SHARED, _TALLEST = 34.0, 10.0, 640.0  # of a lane, more for each further bar that shares it, of all lanes
_MOST_BARS = 2500  # drawn one by one; of more, what share of each pixel column they cover
_LETTER, _READABLE = 9.0, 11.0  # pixels that a letter needs, and how high its bar is at least

Floats = npt.NDArray[np.float64]


def still_timeline(trace: Trace) -> str:
    """The timeline of `trace` as SVG that is readable on light and dark pages, and small however many bars it has.

    Args:
        trace: any. Messages are left out; faults are crosses, whose words a browser shows on hovering.

    Raises:
        InputError: if it is no Trace.

    Example:
        >>> import explorer as ex
        >>> ex.still_timeline(ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)))[:4]
        '<svg'
    """
    trace = check_trace(trace, function="still_timeline")
    share = shared_lanes(trace.events)
    lane = min(_LANE + _SHARED * (share.parts.max(initial=1) - 1), _TALLEST / trace.n_ranks)
    height = _TOP + lane * trace.n_ranks + _BELOW
    begin, end = _span(trace)
    unit = time_unit(end - begin, trace.clock)
    parts = [*_heading(trace), *_lane_names(trace.n_ranks, lane), *_times(begin, end, unit, height)]
    computing = trace.events.stream == Stream.COMPUTE
    few = int(computing.sum()) <= _MOST_BARS
    parts += _bars(trace, share, lane, begin, end) if few else _raster(trace, share, lane, begin, end)
    parts += [_cross(*_place(mark, lane, begin, end), _half(lane), _words(mark, unit)) for mark in _marks(trace)]
    size = f'viewBox="0 0 {_LEFT + _WIDTH + 24:g} {height:g}" width="100%"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">{"".join(parts)}</svg>'


def _span(trace: Trace) -> tuple[float, float]:
    """From the first start to the last end, and to a fault that came later."""
    events, times = trace.events, [mark.time for mark in _marks(trace)]
    begin = min(float(events.start.min(initial=np.inf)), *times, np.inf)
    end = max(float(events.end.max(initial=-np.inf)), *times, -np.inf)
    return (begin, end) if end > begin else (0.0, 1.0)


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start", ink: str = EITHER.text) -> str:
    place = f'x="{x:.5g}" y="{y:.5g}" font-size="{size}" text-anchor="{anchor}" dominant-baseline="central"'
    return f'<text {place} fill="{ink}">{text}</text>'


def _heading(trace: Trace) -> list[str]:
    """The title, and a key for each kind that is drawn."""
    parts, x = [_text(_LEFT, 14, title_of(trace), size=14)], _LEFT
    computing = trace.events.stream == Stream.COMPUTE
    for kind in (Kind(code) for code in np.flatnonzero(np.bincount(trace.events.kind[computing])).tolist()):
        name = f"{KIND_LETTERS[kind]} {html.escape(KIND_TITLES[kind])}"
        parts.append(f'<rect x="{x:g}" y="30" width="11" height="11" fill="{KIND_COLORS[kind]}"/>')
        parts.append(_text(x + 16, 36, name))
        x += 34 + 6.6 * len(name)
    if _marks(trace):
        parts.append(_cross(x + 5.5, 35.5, 4.5, ""))
        parts.append(_text(x + 16, 36, "fault"))
    return parts


def _lane_names(n_ranks: int, lane: float) -> list[str]:
    every = int(np.ceil(15 / lane))
    return [
        _text(_LEFT - 8, _TOP + (rank + 0.5) * lane, f"rank {rank}", anchor="end") for rank in range(0, n_ranks, every)
    ]


def _times(begin: float, end: float, unit: Unit, height: float) -> list[str]:
    """The first and the last time, and those between."""
    marks = np.linspace(begin, end, 6)
    y = height - _BELOW + 12
    texts = [
        _text(_LEFT + (mark - begin) / (end - begin) * _WIDTH, y, f"{mark * unit.factor:.4g}", anchor="middle")
        for mark in marks.tolist()
    ]
    return [*texts, _text(_LEFT + _WIDTH / 2, y + 15, f"time, {unit.name}" if unit.name else "time", anchor="middle")]


def _bars(trace: Trace, share: Share, lane: float, begin: float, end: float) -> list[str]:
    """A path a kind, and letters where there is room."""
    events, scale = trace.events, _WIDTH / (end - begin)
    parts, letters = [], []
    for kind in (Kind(code) for code in np.flatnonzero(np.bincount(events.kind)).tolist()):
        rows = np.flatnonzero((events.kind == kind) & (events.stream == Stream.COMPUTE))
        left = _LEFT + (events.start[rows] - begin) * scale
        width = np.maximum((events.end - events.start)[rows] * scale, 0.5)
        high = 0.8 * lane / share.parts[rows]
        top = _TOP + (events.rank[rows] + 0.1) * lane + share.above[rows] * high
        numbers = events.micro_batch[rows].tolist()
        path = ""
        for x, y, wide, tall, number in zip(*(one.tolist() for one in (left, top, width, high)), numbers, strict=True):
            path += f"M{x:.5g} {y:.5g}h{max(wide - 0.7, 0.4):.4g}v{tall:.4g}h-{max(wide - 0.7, 0.4):.4g}z"
            text = _fitting(KIND_LETTERS[kind], number, wide)
            if text and tall > _READABLE:
                letters.append(_text(x + wide / 2, y + tall / 2, text, size=11, anchor="middle", ink=KIND_INKS[kind]))
        parts.append(f'<path fill="{KIND_COLORS[kind]}" d="{path}"/>' if path else "")
    return [*parts, *letters]


def _fitting(letter: str, number: int, wide: float) -> str:
    """Letter and micro-batch, or the letter, or nothing: as much as there is room for."""
    texts = [f"{letter}{number}", letter] if number >= 0 else [letter]
    return next((text for text in texts if wide >= _LETTER * len(text) * 0.8), "")


# ── faults ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _marks(trace: Trace) -> list[Mark]:
    """What is said of single moments, where time and rank are known."""
    return [mark for mark in trace.marks if np.isfinite(mark.time) and 0 <= mark.rank < trace.n_ranks]


def _place(mark: Mark, lane: float, begin: float, end: float) -> tuple[float, float]:
    return _LEFT + (mark.time - begin) / (end - begin) * _WIDTH, _TOP + (mark.rank + 0.5) * lane


def _half(lane: float) -> float:
    """Half the width of a cross, as large as the lane has room for."""
    return min(max(lane * 0.14, 3.0), 6.0)


def _words(mark: Mark, unit: Unit) -> str:
    return f"{mark.text}\nrank {mark.rank} · at {mark.time * unit.factor:.4g} {unit.name}".rstrip()


def _cross(x: float, y: float, half: float, words: str) -> str:
    """Dark on white, so that it is seen on any bar and any page."""
    strokes = ""
    for color, width, reach in ((LIGHT.paper, 5.5, half + 1.2), (LIGHT.text, 2.5, half)):
        path = f"M{x - reach:.5g} {y - reach:.5g}l{2 * reach:.4g} {2 * reach:.4g}m0-{2 * reach:.4g}"
        path += f"l-{2 * reach:.4g} {2 * reach:.4g}"
        strokes += f'<path fill="none" stroke="{color}" stroke-width="{width:g}" d="{path}"/>'
    title = f"<title>{html.escape(words)}</title>" if words else ""
    return f"<g>{title}{strokes}</g>"


# ── many bars ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _raster(trace: Trace, share: Share, lane: float, begin: float, end: float) -> list[str]:
    """An image a rank, a pixel a pixel column and part of its lane: kinds mixed by the share of time each takes."""
    n_columns, n_ranks = int(_WIDTH), trace.n_ranks
    n_rows = int(np.lcm.reduce(np.unique(share.parts)))  # of a rank
    edges = np.linspace(begin, end, n_columns + 1)
    pixels = np.zeros((n_ranks, n_rows, n_columns, 4))
    for kind in (Kind(int(code)) for code in np.unique(trace.events.kind)):
        red, green, blue = (int(KIND_COLORS[kind][at : at + 2], 16) for at in (1, 3, 5))
        for row in range(n_rows):
            chosen = (trace.events.kind == kind) & (row * share.parts // n_rows == share.above)
            pixels[:, row] += _shares(trace, chosen, edges)[..., None] * np.array([red, green, blue, 255.0])
    filled = np.maximum(pixels[..., 3:] / 255.0, 1e-9)
    pixels[..., :3] /= filled
    lanes = np.minimum(pixels, 255.0).astype(np.uint8)
    return [_image(rows, _TOP + (rank + 0.1) * lane, 0.8 * lane) for rank, rows in enumerate(lanes)]


def _image(rows: npt.NDArray[np.uint8], top: float, height: float) -> str:
    """(n_rows, n_columns, 4) across the picture, each pixel with sharp edges."""
    data = base64.b64encode(_png(rows)).decode("ascii")
    box = f'x="{_LEFT:g}" y="{top:.5g}" width="{_WIDTH:g}" height="{height:.4g}" style="image-rendering:pixelated"'
    return f'<image {box} preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'


def _shares(trace: Trace, chosen: npt.NDArray[np.bool_], edges: Floats) -> Floats:
    """(n_ranks, n_columns) the share of each column that a rank spends on what is `chosen` and computes."""
    events = trace.events
    found = np.zeros((trace.n_ranks, len(edges) - 1))
    rows = np.flatnonzero(chosen & (events.stream == Stream.COMPUTE))
    for rank in np.unique(events.rank[rows]).tolist():
        mine = rows[events.rank[rows] == rank]
        start, end = np.sort(events.start[mine]), np.sort(events.end[mine])
        # seconds covered up to a time: the bars begun before it, less what they have left
        covered = _before(start, edges) - _before(end, edges)
        found[rank] = np.diff(covered) / np.diff(edges)
    return found


def _before(times: Floats, edges: Floats) -> Floats:
    """For each edge, how long ago the times before it were, summed."""
    sums = np.concatenate([[0.0], np.cumsum(times)])
    n_before = np.searchsorted(times, edges)
    return np.asarray(n_before * edges - sums[n_before])


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """(height, width, 4) as a PNG file."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, 4 * width)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
