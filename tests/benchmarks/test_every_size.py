"""Every synchronous schedule at every size up to 4 ranks, 2 chunks and 16 micro-batches, against plain training.

pytest -m benchmark tests/benchmarks/test_every_size.py; a sample of it is in tests/execute/test_family.py.
"""

from __future__ import annotations

import sys
import time

import pytest
import torch

from explorer.execute.keeper import prepare
from tests.execute.family import BACKENDS, RANKS, TRAINS, Apart, apart, sizes

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked"),
]


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare(max(RANKS))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", TRAINS)
def test_three_steps_equal_plain_training_at_every_size(table, name, backend):
    torch.manual_seed(7)
    begin = time.perf_counter()
    found = {size: apart(program, backend) for n_ranks in RANKS for size, program in sizes(name, n_ranks)}
    took = time.perf_counter() - begin
    worst = {f"worst {what}": max(getattr(one, what) for one in found.values()) for what in Apart._fields}
    table(f"{name}, {backend}", {"sizes": len(found), **worst, "s": took})
    assert {size: one for size, one in found.items() if not one.is_rounding} == {}
