"""The timeline as SVG, read back as a picture."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest
from PIL import Image

import explorer as ex
from explorer.core import Mark
from explorer.figures.palette import LIGHT
from explorer.figures.still import _png, _shares
from tests.figures.test_timeline import simulated, together

SVG = "{http://www.w3.org/2000/svg}"


def test_a_small_trace_has_a_rectangle_and_a_text_for_each_bar():
    root = ET.fromstring(ex.still_timeline(simulated()))
    bars = [path.get("d").count("M") for path in root.iter(f"{SVG}path")]
    assert bars == [6, 6]  # F and B, 2 ranks × 3 micro-batches
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts.count("F2") == texts.count("B0") == 2
    assert texts[0] == "1f1b · 2 ranks, 3 micro-batches · simulated"


def test_a_large_trace_is_a_raster_of_some_kilobytes():
    text = ex.still_timeline(simulated(n_ranks=16, n_micro_batches=256))
    assert len(text) < 60_000
    images = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", text)]
    assert [size(data) for data in images] == [(900, 1)] * 16  # a pixel high each, as no bars share a lane


def size(data):
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def test_what_runs_together_shares_a_lane_in_bars_and_in_the_raster():
    root = ET.fromstring(ex.still_timeline(together()))
    forward, backward = (box(path.get("d")) for path in root.iter(f"{SVG}path"))
    # F0 alone, F1 above B0, B1 alone: tops and heights of each kind's two bars
    (whole, _), (upper, half) = forward[0], forward[1]
    assert forward == [(whole, 2 * half), (upper, half)]
    assert backward == [(upper + half, half), (whole, 2 * half)]
    assert whole == upper

    many = ex.still_timeline(ex.simulate(ex.schedule("dualpipev", n_ranks=2, n_micro_batches=700)))
    data = base64.b64decode(re.findall(r"base64,([^\"]+)", many)[1])
    assert size(data) == (900, 2)
    content = data.index(b"IDAT")
    lines = zlib.decompress(data[content + 4 : content + 4 + int.from_bytes(data[content - 4 : content], "big")])
    above, below = np.frombuffer(lines, np.uint8).reshape(2, 1 + 4 * 900)[:, 1 + 4 * 450 : 5 + 4 * 450].tolist()
    assert above[:3] == [10, 110, 189]  # F
    assert below[:3] == [201, 79, 10]  # B


def box(path):
    return [(float(top), float(height)) for top, height in re.findall(r"M\S+ ([\d.]+)h\S+?v([\d.]+)h", path)]


def test_each_fault_is_a_cross_on_its_rank_and_time_that_says_its_words():
    trace = simulated()  # 12 s; lanes of 34 pixels below the first 50, times from 64 on, over 900
    late, last = Mark(0, 1, 3.0, "delay <b>action=F0</b>"), Mark(0, 0, 12.0, "kill rank=0")
    unknown = Mark(0, 0, float("nan"), "of unknown time")
    root = ET.fromstring(ex.still_timeline(dataclasses.replace(trace, marks=(late, last, unknown))))
    legend, *crosses = root.iter(f"{SVG}g")
    assert [cross.findtext(f"{SVG}title") for cross in crosses] == [
        "delay <b>action=F0</b>\nrank 1 · at 3",
        "kill rank=0\nrank 0 · at 12",
    ]
    assert [middle(cross) for cross in crosses] == [pytest.approx((289, 101)), pytest.approx((964, 67))]
    inks = [path.get("stroke") for path in crosses[0].iter(f"{SVG}path")]
    assert inks == [LIGHT.paper, LIGHT.text]  # dark on a white seam: one of them stands out from any page and bar
    assert "fault" in {text.text for text in root.iter(f"{SVG}text")}
    assert legend.find(f"{SVG}title") is None


def middle(cross):
    """Of its dark stroke, which begins above and left of it by half its width."""
    found = re.match(r"M([\d.]+) ([\d.]+)l([\d.]+) ([\d.]+)", cross.findall(f"{SVG}path")[1].get("d"))
    x, y, width, height = map(float, found.groups())
    return x + width / 2, y + height / 2


def test_without_faults_there_is_no_cross():
    root = ET.fromstring(ex.still_timeline(simulated()))
    assert not list(root.iter(f"{SVG}g"))
    assert "fault" not in {text.text for text in root.iter(f"{SVG}text")}


def test_a_fault_after_the_last_bar_is_within_the_picture():
    marked = dataclasses.replace(simulated(), marks=(Mark(0, 1, 24.0, "kill rank=1"),))
    root = ET.fromstring(ex.still_timeline(marked))
    assert middle(list(root.iter(f"{SVG}g"))[1]) == pytest.approx((964, 101))
    rights = [float(x) for path in root.findall(f"{SVG}path") for x in re.findall(r"M([\d.]+)", path.get("d"))]
    assert max(rights) < 64 + 900 / 2


def test_letters_are_written_as_far_as_there_is_room():
    def texts(n_micro_batches):
        root = ET.fromstring(ex.still_timeline(simulated(n_micro_batches=n_micro_batches)))
        return {text.text for text in root.iter(f"{SVG}text")}

    assert {"F9", "B9"} <= texts(10)  # 27 and 54 pixels
    assert {"F", "B24"} <= texts(25)  # 12 and 23 pixels
    assert not {"F", "F1", "B", "B1"} & texts(120)  # 2 and 5 pixels


def test_shares_of_a_pixel_column_are_what_runs_there():
    # rank 0  F0 F1 .  .  B0 B0 F2 B1 B1 .  B2 B2
    trace = simulated()
    shares = _shares(trace, trace.events.kind == ex.Kind.F, np.array([0.0, 1.5, 6.5, 12.0]))
    assert shares[0] == pytest.approx([1.0, 1.0 / 5, 0.5 / 5.5])


def test_png_is_what_was_drawn():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 4), np.uint8)
    assert (np.asarray(Image.open(io.BytesIO(_png(pixels)))) == pixels).all()


def test_a_programs_name_is_text():
    trace = simulated()
    nasty = dataclasses.replace(
        trace, program=dataclasses.replace(trace.program, name="</text><script>alert(1)</script>")
    )
    assert "<script" not in ex.still_timeline(nasty)


def test_no_events_are_an_empty_timeline():
    trace = simulated()
    nothing = ex.Trace(ex.Events.of(step=()), trace.program)
    assert "rank 1" in ex.still_timeline(nothing)


def test_what_is_no_trace_is_refused():
    with pytest.raises(ex.ExplorerError, match="still_timeline draws a Trace; got int"):
        ex.still_timeline(3)
