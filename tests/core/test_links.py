"""Shared links: what is named, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.errors import CostError, InputError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"links": "nic"}, r"links are whole numbers, .*; got .* of shape \(\); try explorer.node_links"),
        ({"links": [[0.5]]}, r"got float64 of shape \(1, 1\)"),
        ({"links": [[True]]}, r"got bool of shape"),
        ({"links": [0, 1]}, r"got int64 of shape \(2,\)"),
        ({"links": [[0, 1]]}, r"got int64 of shape \(1, 2\)"),
        ({"links": [[0], [1, 2]]}, r"links are whole numbers"),
        ({"links": [[-2]]}, r"links are numbered from 0, and -1 is none; got -2; try -1"),
        ({"sharing": "fifo"}, r'sharing is "fair" or "queue"; got .fifo.; try "fair"'),
    ],
)
def test_what_names_no_links_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(CostError, match=message) as caught:
        ex.Costs(**given)  # type: ignore[arg-type]
    assert caught.value.argument == next(iter(given))


def test_links_of_another_number_of_ranks_are_refused() -> None:
    costs = ex.Costs(bandwidth=1.0, message_bytes=1.0, links=ex.node_links(8, ranks_per_node=4))
    with pytest.raises(CostError, match=r"got 8 ranks for 2; try explorer.node_links\(2, ranks_per_node=4\)"):
        ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2), costs)


@pytest.mark.parametrize("counts", [(0, 1), (4, 0), (4, 1.5), (4, True)])
def test_nodes_have_whole_numbers_of_ranks(counts: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=r"is a whole number of at least 1; got .*; try 8"):
        ex.node_links(counts[0], ranks_per_node=counts[1])


def test_links_stay_where_a_share_is_divided() -> None:
    links = ex.node_links(4, ranks_per_node=2)
    program = ex.schedule("interleaved_1f1b", n_ranks=4, n_micro_batches=4, n_chunks=2)
    costs = ex.Costs.per_rank_share(links=links, sharing="queue").for_program(program)
    assert np.array_equal(costs.links, links)  # type: ignore[arg-type]
    assert costs.sharing == "queue"
