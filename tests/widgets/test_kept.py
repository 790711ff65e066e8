from __future__ import annotations

import gc
import weakref

import explorer as ex
from explorer.widgets.kept import kept_with_trace


def _trace():
    return ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=2))


def test_each_question_about_a_trace_is_worked_out_once():
    asked = []

    @kept_with_trace
    def find(trace, *further):
        asked.append(further)
        return object()

    one, other = _trace(), _trace()
    assert find(one, 1) is find(one, 1)
    assert find(one, 2) is not find(one, 1)
    assert find(other, 1) is not find(one, 1)
    assert asked == [(1,), (2,), (1,)]


def test_what_is_kept_keeps_no_trace_alive():
    find = kept_with_trace(lambda trace: trace.makespan)
    trace = _trace()
    find(trace)
    gone = weakref.ref(trace)
    del trace
    gc.collect()
    assert gone() is None
