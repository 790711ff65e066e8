"""Causes of idle time against closed forms and small pipelines that can be checked by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from explorer.analysis.idle_table import IdleCauses

few = settings(max_examples=12)
STRUCTURE = ["fill", "drain", "upstream"]


def summed(trace):
    """(n_ranks,) seconds of each cause, and of fill, drain and upstream together as "structure"."""
    frame = ex.idle_summary(trace)
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    return {**columns, "structure": frame[STRUCTURE].sum(axis=1).to_numpy()}


def present(trace):
    """Names of the causes that a trace has."""
    return set(ex.idle_causes(trace).cause)


def assert_explained(trace, *, within=1e-9):
    """The rows of each rank are disjoint and cover what its idle time is."""
    found = ex.idle_intervals(trace)
    for place, step in enumerate(found.steps):
        one = trace.step(step)
        assert np.allclose(found.totals()[place].sum(axis=1), one.idle_per_rank, rtol=0, atol=within)
    assert (found.seconds > 0).all()
    same = (found.rank[1:] == found.rank[:-1]) & (found.step[1:] == found.step[:-1])
    assert (found.start[1:][same] >= found.end[:-1][same]).all()


# ── closed forms ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
@few
@given(p=st.integers(1, 6), m=st.integers(1, 9), f=st.sampled_from([1.0, 0.3]), b=st.sampled_from([2.0, 0.7]))
def test_equal_stages_idle_for_fill_and_drain_alone(name, p, m, f, b):
    # (P − 1)(F + B) a rank: GPipe, arXiv:1811.06965, section 2.3; Narayanan et al. 2021, arXiv:2104.04473, section 2.2
    trace = ex.simulate(ex.schedule(name, n_ranks=p, n_micro_batches=m), ex.Costs(forward=f, backward=b))
    assert np.allclose(summed(trace)["structure"], (p - 1) * (f + b))
    assert present(trace) <= set(STRUCTURE)


@few
@given(p=st.integers(2, 6), m=st.integers(1, 12))
def test_latency_is_what_messages_add_to_1f1b(p, m):
    # makespan (M+P−1)(F+B) + 2(P−1)c + 2c·floor((M−1)(P−1)/P), for M a multiple of P or not, c small
    c = 1 / 64
    found = summed(ex.simulate(ex.schedule("1f1b", n_ranks=p, n_micro_batches=m), ex.Costs(latency=c)))
    assert np.allclose(found["latency"], 2 * (p - 1) * c + 2 * c * ((m - 1) * (p - 1) // p))
    assert np.allclose(found["structure"], 3 * (p - 1))


@few
@given(p=st.integers(2, 6), m=st.integers(1, 8), c=st.sampled_from([0.0, 0.25]))
def test_latency_is_what_messages_add_to_gpipe(p, m, c):
    # makespan (M+P−1)(F+B) + 2(P−1)c
    found = summed(ex.simulate(ex.schedule("gpipe", n_ranks=p, n_micro_batches=m), ex.Costs(latency=c)))
    assert np.allclose(found["latency"], 2 * (p - 1) * c)
    assert np.allclose(found["structure"], 3 * (p - 1))


seconds = st.lists(st.tuples(st.floats(0.5, 2.0), st.floats(0.5, 4.0)), min_size=2, max_size=5)


@few
@given(stages=seconds, m=st.integers(1, 7))
def test_unequal_stages_of_gpipe_idle_by_what_the_slowest_takes_more(stages, m):
    # makespan Σ(F+B) + (M−1)(max F + max B), exactly
    f, b = np.array(stages).T
    program = ex.schedule("gpipe", n_ranks=len(f), n_micro_batches=m)
    found = summed(ex.simulate(program, ex.Costs(forward=f, backward=b)))
    assert np.allclose(found["imbalance"], (m - 1) * (f.max() - f + b.max() - b))
    assert np.allclose(found["structure"] + found["order"], (f + b).sum() - (f + b))


@few
@given(p=st.integers(2, 6), m=st.integers(1, 8), slow=st.floats(1.01, 2.0), c=st.sampled_from([0.0, 1 / 64]))
def test_a_slow_last_stage_of_1f1b_is_imbalance_beside_latency(p, m, slow, c):
    # Σw + (M−1) max w + 2(P−1)c: the other stages hide their messages where each is faster by more than two of them
    w = np.where(np.arange(p) == p - 1, 3 * max(slow, 1 + 4 * c), 3.0)
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=p, n_micro_batches=m), ex.Costs(forward=w / 3, latency=c))
    found = summed(trace)
    assert trace.makespan == pytest.approx(w.sum() + (m - 1) * w.max() + 2 * (p - 1) * c)
    assert np.allclose(found["latency"], 2 * (p - 1) * c)
    assert np.allclose(found["imbalance"], (m - 1) * (w.max() - w))
    assert np.allclose(found["structure"], w.sum() - w)
    at_fault = ex.idle_causes(trace).query("cause == 'imbalance'")
    assert set(at_fault.stage) <= {p - 1}


@pytest.mark.parametrize(("p", "m", "v"), [(2, 4, 2), (4, 8, 2), (4, 8, 3), (3, 9, 4)])
def test_interleaved_idles_for_a_bubble_of_one_chunk_and_its_messages(p, m, v):
    # bubble (P−1)(F+B)/v of a rank's share, so (P−1)(F+B) of a chunk's: arXiv:2104.04473, section 2.2.2
    program = ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=m, n_chunks=v)
    c = 1 / 1024
    still, moved = ex.simulate(program), ex.simulate(program, ex.Costs(latency=c))
    found = summed(moved)
    assert np.allclose(summed(still)["structure"], 3 * (p - 1))
    assert np.allclose(found["structure"], 3 * (p - 1))
    assert np.allclose(found["latency"], moved.makespan - still.makespan)


@pytest.mark.parametrize(("p", "m", "v"), [(2, 4, 2), (4, 8, 2), (3, 9, 2)])
def test_a_slow_last_rank_of_interleaved_holds_up_the_others_by_what_it_adds(p, m, v):
    program = ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=m, n_chunks=v)
    factor = np.where(np.arange(p) == p - 1, 1.5, 1.0)
    slow, even = ex.simulate(program, ex.Costs(time_factor=factor)), ex.simulate(program)
    found = summed(slow)
    # the rank itself is the one that does not wait for it
    assert np.allclose(found["straggler"][:-1], slow.makespan - even.makespan)
    assert found["straggler"][-1] == 0
    assert set(ex.idle_causes(slow).query("cause == 'straggler'").at_rank) == {p - 1}


# ── one cause at a time ─────────────────────────────────────────────────────────────────────────────────────────


def line(*orders, **options):
    """A forward-only or training program of one stage a rank, from texts."""
    return ex.Program.from_orders("own", ex.Placement.looped(len(orders)), options.pop("m"), orders, **options)


def test_an_action_that_was_ready_is_the_orders_fault_and_named():
    # rank 1 begins with micro-batch 1, though 0 was there a second before
    #     rank 0  F0 F1
    #     rank 1  ░░ ▒▒ F1 F0        ░ fill, ▒ order
    trace = ex.simulate(line("0F0 0F1", "1F1 1F0", m=2))
    rows = ex.idle_causes(trace).query("rank == 1 and cause == 'order'")
    assert rows[["seconds", "kind", "stage", "micro_batch"]].to_numpy().tolist() == [[1.0, "F", 1, 0]]
    assert rows.sentence.item() == (
        "rank 1 waits 1 s for F of micro-batch 1 on stage 0: "
        "F of micro-batch 0 on stage 1 was ready, but comes later in the rank's order"
    )


def test_a_forward_that_memory_forbids_is_not_the_orders_fault():
    # rank 0 of 1F1B could run more forwards while it waits for its first backward, but would hold more than it does
    assert "order" not in present(ex.simulate(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)))


def test_a_hiccup_holds_up_all_ranks_but_its_own_and_is_named():
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    trace = ex.simulate(program, ex.Costs(delays={"1F4": 3.0}))
    assert np.allclose(summed(trace)["hiccup"], [3, 0, 3, 3])
    assert np.allclose(summed(trace)["structure"], 9)
    rows = ex.idle_causes(trace).query("cause == 'hiccup'")
    assert set(zip(rows.kind, rows.stage, rows.micro_batch, strict=True)) == {("F", 1, 4)}
    assert all(text.endswith("F of micro-batch 4 on stage 1 took longer than its like") for text in rows.sentence)


def test_bytes_and_latency_are_told_apart():
    program = ex.schedule("gpipe", n_ranks=3, n_micro_batches=4)
    found = summed(ex.simulate(program, ex.Costs(latency=0.25, message_bytes=50, bandwidth=100)))
    assert np.allclose(found["latency"], 4 * 0.25)  # 2(P−1) messages
    assert np.allclose(found["bandwidth"], 4 * 0.5)


def test_a_wait_that_the_program_adds_is_a_limit():
    # F2 of stage 0 waits for F0 of stage 1, over at 2, and 2 s more; it could have begun at 2
    program = ex.schedule("forward_only", n_ranks=3, n_micro_batches=5).with_waits(("1F0", "0F2", 2.0))
    assert summed(ex.simulate(program))["memory"].tolist() == [2, 2, 2]


def test_no_room_before_a_slow_stage_is_a_limit():
    program = replace(ex.schedule("forward_only", n_ranks=2, n_micro_batches=6), capacities=np.array([0]))
    trace = ex.simulate(program, ex.Costs(forward=[1, 3]))
    # F2 may leave stage 0 once F1 has begun on stage 1, at 4; from then on there is one every 3 s
    rows = ex.idle_causes(trace).query("rank == 0 and cause == 'memory'")
    assert rows.seconds.tolist() == [2, 2, 2, 2]
    assert "had to wait for room" in rows.sentence.iloc[0]


def test_a_message_behind_another_is_a_queue():
    # both messages of rank 0 share one link: the second waits until the first is through
    shared = ex.Costs(forward=1, bandwidth=1, message_bytes=3, links=np.zeros((2, 2), int), sharing="queue")
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=2)
    trace = ex.simulate(program, shared)
    # F0 arrives at 4; F1 is sent at 2, moves from 4 to 7, so 2 s of it are a queue
    assert trace.makespan == 8
    rows = ex.idle_causes(trace).query("rank == 1")
    assert dict(zip(rows.cause, rows.seconds, strict=True))["queue"] == 2
    assert_explained(trace)


@pytest.mark.parametrize("rule", [None, "rendezvous", "buffered", "ordered", "two_streams", "coalesced"])
def test_explicit_messages_are_explained_under_every_rule(rule):
    program = ex.add_messages(ex.schedule("gpipe", n_ranks=4, n_micro_batches=6))
    trace = ex.simulate(program, ex.Costs(forward=[1, 1.5, 1, 1.2], latency=0.2), messages=rule)
    assert_explained(trace)
    assert "host" not in present(trace)
    assert ex.critical_path(trace).seconds.sum() == pytest.approx(trace.makespan)


def test_a_rank_that_stands_at_a_message_it_does_not_need_is_held_up_by_a_queue():
    # by rendezvous rank 0 stands at each of its sends until it is through, and only then runs its next forward
    program = ex.add_messages(ex.schedule("forward_only", n_ranks=2, n_micro_batches=2))
    trace = ex.simulate(program, ex.Costs(latency=2.0), messages="rendezvous")
    rows = ex.idle_causes(trace).query("rank == 0 and start < 3.5")
    assert rows[["cause", "start", "end"]].to_numpy().tolist() == [["queue", 1.0, 3.0]]


def stretched(trace, *, after, seconds):
    """The trace with everything from the given instant on later, as if the host had slept."""
    late = np.where(trace.events.start >= after, seconds, 0.0)
    events = replace(trace.events, start=trace.events.start + late, end=trace.events.end + late)
    return ex.Trace(events, trace.program, clock="real")


def test_seconds_in_which_all_was_there_are_the_hosts():
    trace = stretched(ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)), after=6.0, seconds=0.5)
    found = summed(trace)
    assert found["host"][0] == pytest.approx(0.5)
    assert np.allclose(found["structure"], 3)
    assert ex.gains(trace).query("cause == 'host'").gain.item() == pytest.approx(0.5)


# ── traces of every kind ────────────────────────────────────────────────────────────────────────────────────────


def several(costs):
    """One trace of several steps, each simulated with its own costs, one behind the other."""
    program = ex.schedule("1f1b", n_ranks=3, n_micro_batches=4)
    tables, begin = [], 10.0
    for number, one in enumerate(costs):
        step = ex.simulate(program, one)
        moved = {"step": number, "start": step.events.start + begin, "end": step.events.end + begin}
        tables.append(ex.Events.of(**{**step.events.columns(), **moved}))
        begin += step.makespan + 1.0
    return ex.Trace(ex.Events.concatenate(*tables), program)


def test_a_rank_that_is_slow_in_one_step_is_a_straggler_by_its_own_median():
    slow = ex.Costs(time_factor=[1, 1, 1.5])
    trace = several([ex.Costs(), ex.Costs(), slow, ex.Costs(), ex.Costs()])
    assert_explained(trace)
    rows = ex.idle_causes(trace).query("cause == 'straggler'")
    assert set(rows.step) == {2}
    assert set(rows.at_rank) == {2}
    assert (ex.idle_summary(trace).loc[2, "straggler"].to_numpy() > 0).tolist() == [True, True, False]
    assert "is on a rank that is slower than it should be" in rows.sentence.iloc[0]


def test_a_slow_rank_of_a_single_step_without_costs_is_named_as_imbalance():
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8), ex.Costs(time_factor=[1, 1, 1.5, 1]))
    rows = ex.idle_causes(replace(trace, costs=None)).query("cause == 'imbalance'")
    assert set(rows.at_rank) == {2}
    assert rows.seconds.sum() > 0


def test_without_rows_and_costs_messages_are_read_from_the_gaps():
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    trace = ex.simulate(program, ex.Costs(forward=[1, 1.2, 1, 1], latency=0.25))
    bare = ex.Trace(trace.events.take(trace.events.stream == 0), program)
    assert np.allclose(ex.idle_intervals(bare).totals(), ex.idle_intervals(trace).totals())


def test_without_slots_actions_are_found_by_what_they_are():
    trace = ex.simulate(ex.schedule("zb_h1", n_ranks=3, n_micro_batches=5), ex.Costs(latency=0.1))
    compute = trace.events.take(trace.events.stream == 0)
    bare = ex.Trace(replace(compute, slot=np.full(len(compute), -1, np.int32)), trace.program, costs=trace.costs)
    assert np.allclose(ex.idle_intervals(bare).totals(), ex.idle_intervals(trace).totals())


@pytest.mark.parametrize("name", ["1f1b", "seq1f1b", "dualpipe"])
def test_an_unfinished_trace_is_explained_as_far_as_it_goes(name):
    trace = ex.simulate(ex.schedule(name, n_ranks=4, n_micro_batches=8), ex.Costs(latency=0.1))
    part = replace(trace, events=trace.events.take(trace.events.end < trace.makespan / 2))
    assert_explained(part)
    assert ex.critical_path(part).seconds.sum() == pytest.approx(part.makespan)


def test_a_rank_that_did_nothing_is_idle_throughout():
    trace = ex.simulate(ex.schedule("gpipe", n_ranks=3, n_micro_batches=2))
    part = replace(trace, events=trace.events.take((trace.events.end <= 2) & (trace.events.micro_batch == 0)))
    assert part.idle_per_rank[2] == 2
    rows = ex.idle_causes(part).query("rank == 2")
    assert rows.cause.tolist() == ["fill"]
    assert rows.sentence.item() == (
        "rank 2 has nothing to run for 2 s, until F of micro-batch 0 on stage 1 ends the step, "
        "which follows F of micro-batch 0 on stage 0: the pipeline is filling"
    )


def test_parts_of_a_slot_that_were_timed_apart_leave_a_gap_of_the_hosts():
    program = line("(0F0;0F1) 0B0 0B1", m=2)
    events = ex.Events.of(
        rank=0,
        stage=0,
        micro_batch=[0, 1, 0, 1],
        kind=[0, 0, 1, 1],
        slot=[0, 0, 1, 2],
        start=[0, 2, 3, 4],
        end=[1, 3, 4, 5],
    )
    rows = ex.idle_causes(ex.Trace(events, program))
    assert rows[["cause", "start", "end"]].to_numpy().tolist() == [["host", 1.0, 2.0]]


def test_an_empty_trace_has_no_rows():
    trace = ex.Trace(ex.Events.of(step=()), ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    assert len(ex.idle_causes(trace)) == 0
    assert len(ex.idle_summary(trace)) == 0
    assert list(ex.idle_causes(trace).columns[:6]) == ["step", "rank", "start", "end", "seconds", "cause"]


def test_a_summary_sums_to_the_idle_time_of_each_rank():
    trace = ex.simulate(ex.schedule("zb_v", n_ranks=4, n_micro_batches=8), ex.Costs(forward=1.3, latency=0.1))
    frame = ex.idle_summary(trace)
    assert frame.index.names == ["step", "rank"]
    assert np.allclose(frame.total, trace.idle_per_rank)


def test_one_row_reads_as_its_frame_does():
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    found = ex.idle_intervals(trace)
    assert isinstance(found, IdleCauses)
    assert [found.sentence(row) for row in range(len(found))] == list(ex.idle_causes(trace).sentence)
    assert found.sentence(0) == "rank 0 waits 2 s for B of micro-batch 0 on stage 1: the pipeline is filling"


def test_ranks_are_named_where_stages_do_not_tell():
    trace = ex.simulate(ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=2, n_chunks=2))
    assert any("on stage 3 (rank 1)" in text for text in ex.idle_causes(trace).sentence)


@pytest.mark.parametrize(("factor", "words"), [(1e-3, "2 ms"), (1e-6, "2 µs"), (1e-9, "0.002 µs")])
def test_seconds_are_told_in_a_unit_that_fits(factor, words):
    trace = ex.simulate(
        ex.schedule("1f1b", n_ranks=2, n_micro_batches=2), ex.Costs(forward=factor, backward=2 * factor)
    )
    assert f"waits {words} for" in ex.idle_causes(trace).sentence.iloc[0]
