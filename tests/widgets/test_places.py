import html
import math
import re
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.core import Mark
from explorer.widgets import places
from explorer.widgets.basis import share_of
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


def test_why_says_which_rank_a_fault_slows_down():
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    slowed = ex.simulate(program, ex.Costs(time_factor=[1, 1, 1.5, 1]))
    run = replace(slowed, costs=None, clock="virtual", marks=(Mark(0, 2, 0.0, "slow rank=2 factor=1.5"),))
    page = why_page(run)
    # the others each wait 19.5 − 9 s of 66 in all for it
    assert "Mostly: a slow rank: rank 2, by a fault (48%), the pipeline fills (27%)." in page
    assert "rank 2 runs without the fault that slows it down (1.5×)</td><td>10.5 s" in page
    assert "a heavier stage" not in page
    assert "a heavier stage: stage 2" in why_page(replace(run, marks=()))


def test_why_says_by_how_much_the_bubble_of_equal_stages_can_be_smaller():
    share = ex.Costs.per_rank_share(forward=1.0, backward=2.0)
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    page = html.unescape(why_page(ex.simulate(program, share.for_program(program)), share))
    # (P − 1) / (M + P − 1): 3/11 and 3/19; a micro-batch takes 3 · 11/8 s and 3 · 19/16 s
    assert (
        "16 micro-batches of the same size instead of 8 leave ranks idle for 15.8% of the step instead of 27.3%, and "
        "each takes 13.6% less; ZB-V takes 25.5 s instead of 33 s (22.7% less)"
    ) in page
    assert "All of the waiting is the schedule's own bubble: no stage, rank or link is at fault." in page


def test_why_names_no_schedule_that_a_device_has_no_room_for():
    share = ex.Costs.per_rank_share(forward=1.0, backward=2.0, activation_bytes=100)
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    trace = ex.simulate(program, share.for_program(program))
    # of 100 bytes a micro-batch ZB-V holds 2P half ones, so 400, and V-Half 6 half ones
    assert re.search(r"V-Half takes \S+ s instead of 33 s", why_page(trace, share, memory_limit=350))
    assert "ZB-V takes 25.5 s" in why_page(trace, share, memory_limit=450)
    assert "By simulation" not in why_page(trace, share, memory_limit=150)


def test_why_says_of_a_bubble_beside_causes_how_much_it_is():
    share = ex.Costs.per_rank_share(forward=1.0, backward=2.0, latency=0.1)
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    page = html.unescape(why_page(ex.simulate(program, share.for_program(program)), share))
    assert re.search(r"\d\d% of the waiting is the schedule's own bubble, for which no stage, rank or link", page)
    slow = ex.simulate(program, ex.Costs(time_factor=[1, 1, 4, 1]))
    assert "own bubble" not in why_page(slow, share)


def test_why_has_nothing_to_say_where_nobody_waits():
    assert "No rank ever waits" in why_page(ex.simulate(ex.schedule("1f1b", n_ranks=1, n_micro_batches=2)))
    assert "only less work makes the step shorter" in why_page(
        ex.simulate(ex.schedule("1f1b", n_ranks=1, n_micro_batches=2))
    )


def test_why_names_kinds_in_words():
    page = why_page(ex.simulate(ex.schedule("zb_h1", n_ranks=2, n_micro_batches=4)))
    assert all(words in page for words in ("all forwards (F)", "all backwards for weights (W)"))
    assert "kind " not in page


def test_compare_orders_schedules_by_time_and_says_why_others_are_not_there():
    page, found = compared(Settings(n_ranks=4, n_micro_batches=6, forward=1.0))
    names = list(found)
    assert "forward_only" not in page
    assert names.index("zb_h1") < names.index("1f1b") < names.index("naive")
    assert "dualpipe" not in names
    assert "<b>DualPipe</b>: " in page
    assert "zb_h1" not in page


def test_places_that_change_faster_than_they_are_worked_out_do_not_pile_up(app, monkeypatch):
    at_once, most, asked, goes_on = [0], [0], [], threading.Event()

    def slow(settings, _measured, **_of_run):
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


@pytest.mark.parametrize(
    "settings",
    [
        Settings(n_ranks=2, n_micro_batches=2, n_steps=2, latency=0.002),
        # what is predicted has messages and an optimizer that a run brings by itself
        Settings(n_ranks=2, n_micro_batches=4, schedule="zb_v", n_chunks=2, messages="buffered", update=0.01),
    ],
)
def test_the_code_of_a_run_runs_it_again(settings):
    ran = settings.predict().trace
    marks = [Mark(step=step, rank=1, time=0.0, text="slow rank=1 factor=2") for step in (0, 1)]
    found = {}
    exec(code_of(settings, replace(ran, clock="virtual", marks=tuple(marks))), found)  # noqa: S102  our own
    run = found["run"]
    assert run.parity
    assert len(run.losses) == settings.n_steps
    assert str(run.trace.program) == str(settings.predict().program)
    assert {mark.text for mark in run.trace.marks} == {"slow rank=1 factor=2"}
    if settings.latency:
        sends = run.trace.events.take(run.trace.events.stream == ex.core.Stream.SEND)
        assert np.allclose(sends.end - sends.start, settings.latency)


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
    assert "All of the waiting is the schedule&#x27;s own bubble" in app.places.page
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


def test_the_share_of_a_ranks_stages_is_what_they_were_made_of():
    share = ex.Costs.per_rank_share(
        forward=[1.0, 2.0, 1.0, 1.0],
        backward=2.0,
        activation_bytes=100,
        parameter_bytes=7,
        message_bytes=3,
        latency=0.1,
    )
    for name in ("1f1b", "interleaved_1f1b", "zb_v", "seq1f1b", "chimera"):
        program = ex.schedule(name, n_ranks=4, n_micro_batches=8)
        trace = ex.simulate(program, share.for_program(program))
        again = ex.simulate(program, share_of(trace.costs, program).for_program(program))
        assert again.makespan == pytest.approx(trace.makespan)
        assert ex.peak_bytes(again).tolist() == ex.peak_bytes(trace).tolist()


def test_compare_has_no_column_for_bytes_that_nobody_knows():
    def heads(page):
        return re.findall(r"<th[^>]*>(.*?)</th>", page)

    page, _ = compared(Settings(n_ranks=2, n_micro_batches=4))
    assert "memory" not in " ".join(heads(page))
    assert "is not known: press Run, or type Activations" in page
    page, _ = compared(Settings(n_ranks=2, n_micro_batches=4, activation_bytes=1e6))
    assert "memory, MiB" in heads(page)
    assert "step, ms" in heads(page)
    assert "is not known" not in page
