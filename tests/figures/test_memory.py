"""What the memory chart shows."""

import explorer as ex
from explorer.figures.memory import memory_info


def simulated(n_ranks=2, **costs):
    return ex.simulate(ex.schedule("1f1b", n_ranks=n_ranks, n_micro_batches=3), ex.Costs(**costs))


def test_memory_counts_micro_batches_where_no_bytes_are_known():
    info = memory_info(simulated())
    assert (info.what, info.unit.name) == ("micro-batches in flight", "")
    # rank 1  .  F0 B0 B0 F1 B1 B1 F2 B2 B2 .  .
    assert info.lines[1].time.tolist() == [0, 1, 4, 7, 10, 12]
    assert info.lines[1].level.tolist() == [0, 1, 1, 1, 0, 0]


def test_memory_shows_bytes_in_a_binary_unit():
    info = memory_info(simulated(activation_bytes=3 << 20))
    assert (info.what, info.unit.name) == ("memory held", "MiB")
    assert ex.memory(simulated(activation_bytes=3 << 20)).data[0].y.max() == 6


def test_memory_leaves_out_a_prediction_that_knows_no_bytes():
    known, unknown = simulated(activation_bytes=8), simulated()
    assert memory_info(known, predicted=unknown).predicted == []
    assert len(memory_info(known, predicted=known).predicted) == 2


def test_memory_has_a_line_a_rank_and_a_legend_only_for_few():
    assert len(ex.memory(simulated(n_ranks=20)).data) == 20
    assert not any(line.showlegend for line in ex.memory(simulated(n_ranks=20)).data)
    assert [line.name for line in ex.memory(simulated()).data] == ["rank 0", "rank 1"]


def test_timeline_and_memory_share_their_time_axis():
    figure = ex.timeline_and_memory(simulated())
    assert {trace.xaxis for trace in figure.data} == {None}
    assert [trace.yaxis for trace in figure.data] == [None, None, "y2", "y2"]


def test_timeline_and_memory_draw_what_the_device_has():
    figure = ex.timeline_and_memory(simulated(activation_bytes=3 << 20), device_bytes=1e9)
    (device,) = (trace for trace in figure.data if trace.name == "the device has")
    assert device.yaxis == "y2"
    assert set(device.y) == {1e9 / 2**20}  # in MiB, as the lines
