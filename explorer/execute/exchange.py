"""Everybody's values for everybody, over the ranks' own group."""

from __future__ import annotations

from typing import Any

import torch

from explorer.execute.wire import packed, unpacked


def exchanged(value: Any, group: Any) -> list[Any]:
    """(n_ranks,) what each rank has given; every rank of the group calls it.

    Args:
        value: this rank's.
        group: of all ranks, which carries tensors of the host.
    """
    distributed: Any = torch.distributed
    own, n_ranks = distributed.get_rank(group), distributed.get_world_size(group)
    data, tensors = packed(value)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(n_ranks)]
    distributed.all_gather(lengths, torch.tensor([len(data)]), group=group)
    values = []
    for rank in range(n_ranks):
        text = torch.frombuffer(bytearray(data), dtype=torch.uint8) if rank == own else _bytes(int(lengths[rank]))
        distributed.broadcast(text, rank, group=group)
        waiting = iter(tensors if rank == own else ())

        def read(empty: torch.Tensor, rank: int = rank, waiting: Any = waiting) -> torch.Tensor:
            tensor: torch.Tensor = next(waiting, empty)
            if tensor.numel():
                distributed.broadcast(tensor.reshape(-1).view(torch.uint8), rank, group=group)
            return tensor

        values.append(unpacked(bytes(text.numpy()), read))
    return values


def _bytes(n: int) -> torch.Tensor:
    return torch.empty(n, dtype=torch.uint8)
