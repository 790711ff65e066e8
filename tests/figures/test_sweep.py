"""What sweep charts show: every cell, its number or reason, and the best."""

import numpy as np
import pytest

import explorer as ex
from explorer.figures.sweep_cells import cells_of


def swept(schedules=("gpipe", "1f1b", "zb_h1"), n_ranks=4, n_micro_batches=(4, 8), **options):
    costs = ex.Costs.per_rank_share(activation_bytes=100)
    return ex.sweep(list(schedules), n_ranks=n_ranks, n_micro_batches=n_micro_batches, costs=costs, **options)


def cells(frame, x="n_micro_batches", y="schedule", value="makespan", memory_limit=None):
    return cells_of(frame, x=x, y=y, value=value, memory_limit=memory_limit)


def test_a_sweep_becomes_a_table_of_numbers():
    # (M + P − 1)·3, and ZB-H1's idle time a third of it: 3 instead of 9
    found = cells(swept())
    assert (found.rows, found.columns) == (["gpipe", "1f1b", "zb_h1"], [4, 8])
    assert found.number.tolist() == [[21, 33], [21, 33], [15, 27]]
    assert found.text == [["21", "33"], ["21", "33"], ["15", "27"]]
    assert found.best == (2, 0)


def test_what_does_not_exist_has_its_reason_and_no_number():
    found = cells(swept(["dualpipe", "1f1b"]))
    assert np.isnan(found.number[0, 0])
    assert (found.text[0][0], found.counts.tolist()) == ("–", [[False, True], [True, True]])
    assert "at least 8" in found.hover[0][0].replace("<br>", " ")
    assert "makespan" not in found.hover[0][0]


def test_what_is_over_the_limit_keeps_its_number_and_is_not_the_best():
    # GPipe holds M, 1F1B P = 4, of 100 bytes each
    found = cells(swept(["gpipe", "1f1b"], n_micro_batches=[8, 4]), value="bubble_ratio", memory_limit=400)
    assert found.counts.tolist() == [[True, False], [True, True]]
    assert found.text[0][1] == found.text[1][1] == "27.3%"
    assert "more than the limit of 400 bytes" in found.hover[0][1]
    assert found.best == (1, 1)


def test_a_cell_of_several_rows_shows_the_best_that_counts():
    found = cells(swept(["gpipe", "1f1b", "zb_h1"]), y="n_ranks")
    assert found.number.tolist() == [[15, 27]]
    limited = cells(swept(["gpipe", "zb_h2"], memory_limit=500), y="n_ranks", value="makespan")
    # ZB-H2 would take less and hold 2P − 1 = 7; with four micro-batches both hold four
    assert limited.counts.tolist() == [[True, False]]


def test_nothing_is_best_where_nothing_counts():
    frame = swept(["gpipe"], memory_limit=1)
    assert cells(frame).best is None
    figure = ex.sweep_chart(frame)
    assert figure.layout.title.subtitle.text.startswith("nothing here exists within the limit")
    assert len(figure.layout.shapes) == 0


def test_sweep_chart_frames_the_best_and_tells_it():
    figure = ex.sweep_chart(swept(), value="makespan")
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-0.5, 0.5, 1.5, 2.5)
    assert figure.layout.title.subtitle.text == "best: zb_h1, 4 micro-batches: 15"


def test_sweep_chart_draws_what_does_not_count_apart():
    out, colored = ex.sweep_chart(swept(["dualpipe", "1f1b"]), value="makespan").data
    assert np.isnan(colored.z).tolist() == [[True, False], [False, False]]
    assert np.isnan(out.z).tolist() == [[False, True], [True, True]]
    assert out.text[0][0] == "–"
    # the row behind a cell, for whoever clicks on it
    assert [[cell[0] for cell in line] for line in colored.customdata] == [[0, 1], [2, 3]]


def test_sweep_chart_takes_the_axis_that_varies():
    assert ex.sweep_chart(swept(["1f1b"], n_ranks=[2, 4])).layout.yaxis.title.text == "ranks"
    chunked = ex.sweep("interleaved_1f1b", n_ranks=4, n_micro_batches=[4, 8], n_chunks=[2, 4])
    assert ex.sweep_chart(chunked).layout.yaxis.title.text == "stages a rank"


def test_sweep_chart_writes_no_numbers_in_many_cells():
    frame = ex.sweep("1f1b", n_ranks=range(1, 22), n_micro_batches=range(1, 22))
    assert all(trace.text is None for trace in ex.sweep_chart(frame).data)


def test_sweep_lines_draw_a_schedule_each_with_gaps_and_hollow_points():
    figure = ex.sweep_lines(swept(["gpipe", "dualpipe"], n_micro_batches=[4, 8]), value="makespan", memory_limit=400)
    gpipe, dualpipe = figure.data
    assert (gpipe.name, dualpipe.name) == ("gpipe", "dualpipe")
    assert list(gpipe.y) == [21, 33]
    assert [symbol.endswith("-open") for symbol in gpipe.marker.symbol] == [False, True]
    assert np.isnan(dualpipe.y[0])


def test_sweep_lines_name_what_else_differs():
    frame = ex.sweep(["1f1b", "interleaved_1f1b"], n_ranks=[2, 4], n_micro_batches=[4, 8])
    names = [line.name for line in ex.sweep_lines(frame).data]
    assert names[:2] == ["1f1b, 2 ranks", "1f1b, 4 ranks"]
    assert len(names) == 4


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda: ex.sweep_chart(3), "draws what explorer.sweep gives"),
        (lambda: ex.sweep_chart(swept().head(0)), "with a row at least"),
        (lambda: ex.sweep_chart(swept(), value="beauty"), "value is one of makespan, .* got 'beauty'"),
        (lambda: ex.sweep_chart(swept(), x="makespan"), "x is one of schedule, n_ranks"),
        (lambda: ex.sweep_chart(swept(), y="makespan"), "y is one of schedule, n_ranks"),
        (lambda: ex.sweep_lines(swept(), memory_limit=-1), "memory_limit is bytes, above 0"),
    ],
)
def test_what_sweep_charts_cannot_draw_is_refused(give, message):
    with pytest.raises(ex.ExplorerError, match=message):
        give()
