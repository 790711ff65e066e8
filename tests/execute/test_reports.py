"""What a rank tells goes through a pipe as numbers and comes out as it was."""

import math

import pytest

from explorer.core import Action, Category, Kind
from explorer.execute._torch_ranks import Parcel
from explorer.execute.events import Memory, SlotEnd, Updated
from explorer.execute.faults import Injected, SlowRank
from explorer.execute.reports import from_report, to_report

OVERLAP = SlotEnd(3, 1, 7, (Action(Kind.F, 2, 5), Action(Kind.B, 1, 4)), 0.5, 1.0, 1.75, ((1.0, 1.25), (1.5, 1.75)))
SENT = Parcel(Kind.SEND_F, 2, 5, 4096, 1.25)
RECEIVED = Parcel(Kind.RECV_B, 1, 4, 4096, 0.25, 0.5, 1.0)
HELD = Memory(0, 7, True, 1, Category.WEIGHT_GRADIENTS, 1, 4, -4096)
UPDATED = Updated(3, 1, 2, 0.125, 9.0)
SLOW = Injected(3, 1, 7, SlowRank(rank=1, factor=2.0), 4.5)


@pytest.mark.parametrize("rows", [[OVERLAP], [RECEIVED, HELD, UPDATED], [SLOW, OVERLAP], []])
def test_rows_come_out_as_they_went_in(rows):
    what, step, told = from_report(to_report("rows", 3, rows))
    assert (what, step, told) == ("rows", 3, rows)
    assert list(map(type, told)) == list(map(type, rows))
    assert all(isinstance(action.kind, Kind) for row in told if isinstance(row, SlotEnd) for action in row.actions)
    assert all(isinstance(row.category, Category) for row in told if isinstance(row, Memory))


def test_a_message_that_has_not_been_waited_for_says_so_still():
    ((sent,),) = [from_report(to_report("rows", 0, [SENT]))[2]]
    assert sent[:5] == SENT[:5]
    assert math.isnan(sent.wanted)
    assert math.isnan(sent.got)


def test_what_is_no_row_goes_as_it_is():
    assert from_report(to_report("end", 2, (0.5, 0.01))) == ("end", 2, (0.5, 0.01))
