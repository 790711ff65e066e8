import math
import threading
import time

import numpy as np
import pytest

import explorer as ex
from explorer.widgets import places
from explorer.widgets.code import code_of
from explorer.widgets.compared import compared
from explorer.widgets.markup import Part, bar, element, table
from explorer.widgets.settings import Settings
from explorer.widgets.why import why_page

LONG = 60.0  # seconds; a failure is a test that hangs


def until(true):
    limit = time.monotonic() + LONG
    while not true() and time.monotonic() < limit:
        time.sleep(0.01)
    assert true()


@pytest.fixture
def app():
    app = ex.explore(n_ranks=4, n_micro_batches=8, run_on_change=False)
    yield app
    app.close()


def test_what_is_written_is_escaped():
    page = element("p", "<b>", bar([Part(0.5, "red", "<", '"')])) + table(["<i>"], [["&"]], caption="<script>")
    assert not any(tag in page for tag in ("<b>", "<i>", "<script>"))
    assert all(text in page for text in ('title="&quot;"', "<td>&amp;</td>"))


def test_why_says_what_a_slow_rank_costs():
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    page = why_page(ex.simulate(program, ex.Costs(time_factor=[1, 1, 1.5, 1])))
    # the step is 43.5 where it would be 33: (43.5 − 33) of it are the slow rank's
    assert "rank 2 runs as fast as it should (1.5×)</td><td>10.5 s" in page
    assert "a slow rank" in page


def test_why_has_nothing_to_say_where_nobody_waits():
    assert "No rank ever waits" in why_page(ex.simulate(ex.schedule("1f1b", n_ranks=1, n_micro_batches=2)))


def test_compare_orders_schedules_by_time_and_says_why_others_are_not_there():
    page, found = compared(Settings(n_ranks=4, n_micro_batches=6, forward=1.0))
    names = list(found)
    assert "forward_only" not in page
    assert names.index("zb_h1") < names.index("1f1b") < names.index("naive")
    assert "dualpipe" not in names
    assert "<b>dualpipe</b>: " in page


def test_places_that_change_faster_than_they_are_worked_out_do_not_pile_up(app, monkeypatch):
    at_once, most, asked, goes_on = [0], [0], [], threading.Event()

    def slow(settings):
        asked.append(settings.n_ranks)
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        goes_on.wait(LONG)
        at_once[0] -= 1
        return element("p", f"{settings.n_ranks} ranks"), {"1f1b": 1}

    monkeypatch.setattr(places, "compared", slow)
    app.places.choice.value = "compare"
    until(lambda: asked)
    for n_ranks in (5, 6, 7):
        app.controls.fields["n_ranks"].control.value = n_ranks
        threading.Thread(target=app.places._work, daemon=True).start()
    goes_on.set()
    until(lambda: "7 ranks" in app.places.page)
    assert most == [1]
    assert asked == [4, 7]


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(schedule="zb_v", n_chunks=2, weight_share=0.3, jitter=0.1, seed=3),
        Settings(schedule="eager_1f1b", options="warm_up=6", latency=0.002, slow_rank=2, slow_factor=1.5),
        Settings(latency=0.001, messages="buffered", update=0.01),
        Settings(bandwidth=1e9, ranks_per_node=2, sharing="queue", late_action="1F3", late=0.5),
        Settings(moves=(("0F3", 4),), recompute=1.0, recompute_for="both", fixed=0.001),
    ],
)
def test_the_code_gives_what_is_shown(settings):
    predicted = settings.predict().trace
    found = {}
    exec(code_of(settings), found)  # noqa: S102  what the project itself wrote
    assert found["trace"].makespan == predicted.makespan
    assert np.array_equal(found["trace"].events.start, predicted.events.start)


def test_the_codes_app_stands_where_this_one_does():
    settings = Settings(schedule="zb_v", n_chunks=2, jitter=0.1, bandwidth=math.inf, latency=0.002, options="")
    app = code_of(settings).partition("# or the app, as it stands here:\n")[2].replace("# ", "")
    opened = eval(app, {"ex": ex})  # noqa: S307  what the project itself wrote
    try:
        assert opened.controls.settings() == settings
    finally:
        opened.close()


def test_places_follow_the_picture_only_while_they_are_open(app):
    assert not app.places.page
    app.places.choice.value = "why"
    until(lambda: "Ranks wait 27.3%" in app.places.page)
    app.controls.fields["n_micro_batches"].control.value = 16
    until(lambda: "Ranks wait 15.8%" in app.places.page)  # 3 / (16 + 3)
    app.places.choice.value = "none"
    app.controls.fields["n_micro_batches"].control.value = 8
    app.places.choice.value = "code"
    until(lambda: "n_micro_batches=8" in app.places.code)


def test_a_schedule_that_is_compared_can_be_shown(app):
    app.places.choice.value = "compare"
    until(lambda: "zb_h1" in app.places.schedules)
    app.places.show("zb_v")
    shown = app.controls.settings()
    assert (shown.schedule, shown.n_chunks) == ("zb_v", 2)
    assert app.prediction.program.name == "zb_v"


def test_a_cell_of_a_sweep_opens_in_the_picture(app):
    app.places.choice.value = "sweep"
    sweeps = app.places.sweeps
    sweeps.schedules.value, sweeps.counts.value = ("1f1b", "interleaved_1f1b"), "8, 160"
    sweeps.begin()
    sweeps.wait(finish=True)
    row = sweeps.table.cells["rows"].index("Interleaved 1F1B")
    sweeps.table.chosen = [row, 1, 1]
    shown = app.controls.settings()
    assert (shown.schedule, shown.n_micro_batches, shown.n_chunks) == ("interleaved_1f1b", 160, 2)
    assert app.prediction.trace.makespan == shown.predict().trace.makespan
