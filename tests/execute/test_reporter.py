"""What a worker counts as spent on telling of its work."""

import time
from multiprocessing import Pipe

from explorer.execute.events import SlotEnd
from explorer.execute.reporter import Reporter


class Reader:
    """The other end of a pipe that takes its time, as one does that runs on the writer's own core."""

    def send_bytes(self, told):
        time.sleep(0.02)


def test_while_its_reader_runs_in_its_place_a_worker_spends_nothing():
    told = []
    reporter = Reporter(Reader())
    reporter.begin(0)
    tell = reporter.tell
    reporter.tell = lambda what, value: told.append(value) if what == "end" else tell(what, value)
    for _ in range(3):
        reporter.slot_end("a row")
        reporter.flush()
    reporter.end(0.5)
    ((loss, share),) = told
    assert loss == 0.5
    assert 0 < share < 0.2  # of 60 ms and more that only passed


def test_to_a_caller_that_has_gone_nothing_is_told():
    ours, theirs = Pipe()
    theirs.close()
    reporter = Reporter(ours)
    reporter.begin(0)
    reporter.slot_end(SlotEnd(0, 0, 0, (), 0.5))
    reporter.flush()
    reporter.end(0.5)
    assert not reporter._rows
