"""Faults in a timeline: a cross where each was, its words on hovering."""

from __future__ import annotations

import dataclasses

import explorer as ex
from explorer.core import Mark
from explorer.figures.timeline import timeline_info


def test_each_mark_is_a_cross_at_its_rank_and_time_with_escaped_words():
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2), ex.Costs(forward=1e-3))
    marked = dataclasses.replace(trace, marks=(Mark(0, 1, 2e-3, "kill rank=1"), Mark(0, 0, 0.0, "<b>")))
    assert [mark.text for mark in timeline_info(marked).marks] == ["kill rank=1", "&lt;b&gt;"]
    (crosses,) = [one for one in ex.timeline(marked).data if one.name == "faults"]
    factor = timeline_info(marked).unit.factor
    assert list(crosses.x) == [2e-3 * factor, 0.0]
    assert list(crosses.y) == [1, 0]
    assert not [one for one in ex.timeline(trace).data if one.name == "faults"]
