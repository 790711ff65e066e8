"""The sweep panel: what it draws, says and opens."""

import pytest

import explorer as ex
from explorer.widgets.look import Look
from explorer.widgets.settings import Settings
from explorer.widgets.sweeps import SweepPanel, read_counts


@pytest.fixture
def panel():
    opened = []
    one = SweepPanel(lambda: Settings(forward=1.0, n_ranks=4, n_micro_batches=8), opened.append, Look())
    one.opened = opened
    one.schedules.value = ("gpipe", "1f1b", "zb_h1", "dualpipe")
    one.counts.value = "4, 8"
    yield one
    one.close()


def swept(panel):
    panel.begin()
    panel.wait(finish=True)
    return panel.table.cells


def test_a_sweep_fills_the_table(panel):
    # idle (P−1)/(M+P−1) = 3/7 and 3/11; ZB-H1 a third of the idle time: 3/15 and 3/27
    cells = swept(panel)
    assert cells["rows"] == ["GPipe", "1F1B", "ZB-H1", "DualPipe"]
    assert cells["columns"] == ["4", "8"]
    assert cells["text"][:3] == [["42.9%", "27.3%"], ["42.9%", "27.3%"], ["20.0%", "11.1%"]]
    assert (cells["text"][3][0], cells["shade"][3][0]) == ("–", None)
    assert "at least 8" in cells["told"][3][0].replace("\n", " ")
    assert cells["title"].endswith(f"best: DualPipe, 8 micro-batches: {cells['text'][3][1]}")  # as its row is named
    assert panel.status.value.startswith("8 of 8")
    assert (panel.start.disabled, panel.stop.disabled) == (False, True)


def test_another_measure_is_shown_without_another_sweep(panel):
    swept(panel)
    panel.value.value = "peak_in_flight"
    # GPipe holds M, 1F1B and ZB-H1 at most P, DualPipe P + 1
    assert panel.table.cells["text"] == [["4", "8"], ["4", "4"], ["4", "4"], ["–", "5"]]


def test_shades_go_from_the_least_to_the_most_that_counts(panel):
    panel.value.value = "makespan"
    shade = swept(panel)["shade"]
    assert shade[0][1] == shade[1][1] == 1  # 33
    assert shade[2][0] == 0  # 15


def test_a_clicked_cell_is_opened_with_all_else_as_it_was(panel):
    swept(panel)
    panel.table.chosen = [2, 0, 1]
    panel.table.chosen = [2, 0, 2]
    assert panel.opened == [Settings(forward=1.0, schedule="zb_h1", n_ranks=4, n_micro_batches=4, n_chunks=1)] * 2


def test_a_click_beside_the_table_opens_nothing(panel):
    panel.table.chosen = [0, 0, 1]
    swept(panel)
    panel.table.chosen = [9, 9, 2]
    assert panel.opened == []


def test_sweeps_over_ranks_and_chunks(panel):
    panel.over.value = "n_ranks"
    assert swept(panel)["columns"] == ["4", "8"]
    panel.schedules.value = ("interleaved_1f1b",)
    panel.over.value, panel.counts.value = "n_chunks", "2-3"
    panel.value.value = "makespan"
    # 8·3 + 9/v
    assert swept(panel)["text"] == [["28.5", "27"]]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ("", "needs a value at least"),
        ("4, x", "got &#x27;x&#x27;"),
        ("4--5", "whole numbers"),
        ("1-9999", "at most 2000"),
    ],
)
def test_what_cannot_be_swept_is_said_under_the_controls(panel, counts, message):
    panel.counts.value = counts
    panel.begin()
    assert message in panel.error.value
    assert panel.table.cells == {}


def test_no_schedule_is_said_under_the_controls(panel):
    panel.schedules.value = ()
    panel.begin()
    assert "none is chosen" in panel.error.value


@pytest.mark.parametrize(
    ("text", "counts"), [("4, 8,16", [4, 8, 16]), ("8, 4, 4", [4, 8]), ("2-5, 9", [2, 3, 4, 5, 9])]
)
def test_counts_are_read(text, counts):
    assert read_counts(text) == counts


def test_a_sweep_can_be_stopped(panel):
    def build(*, n_ranks, n_micro_batches):
        panel._stop.set()
        return ex.schedule("1f1b", n_ranks=n_ranks, n_micro_batches=n_micro_batches)

    ex.register("stopping", build)
    try:
        panel.schedules.options = [*panel.schedules.options, ("stopping", "stopping")]
        panel.schedules.value = ("stopping",)
        panel.counts.value = "3-9"
        swept(panel)
        assert panel.status.value.startswith("1 of 7 · stopped")
    finally:
        ex.unregister("stopping")


def test_a_sweep_marks_the_best_that_fits_and_strikes_out_what_does_not():
    # GPipe keeps M activations of 1 GiB, 1F1B 4, in what a device has: 5
    settings = Settings(activation_bytes=2.0**30, memory_limit=5 * 2.0**30, message_bytes=0.0)
    panel = SweepPanel(lambda: settings, lambda _opened: None, Look())
    panel.schedules.value, panel.counts.value = ("gpipe", "1f1b"), "4, 8"
    cells = swept(panel)
    assert cells["over"] == [[False, True], [False, False]]
    assert cells["best"] == [1, 1]
    assert cells["key"] == "Struck out: 1 cell needs more than the 5 GiB of a rank's device"
    panel.value.value = "peak_bytes"
    assert panel.table.cells["text"] == [["4 GiB", "8 GiB"], ["4 GiB", "4 GiB"]]
    panel.close()


def test_a_sweep_without_bytes_says_so_in_place_of_0_bytes(panel):
    panel.value.value = "peak_bytes"
    cells = swept(panel)
    assert "no bytes are known" in cells["title"]
    assert cells["text"][0] == ["–", "–"]
    assert cells["best"] is None
