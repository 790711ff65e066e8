"""Values that ranks tell each other over their own group: everybody's to all, all to the first, the first's to all.

Every rank of the group calls the same function at the same place. The group carries tensors of the host.
"""

from __future__ import annotations

from typing import Any

import torch

from explorer.execute.wire import packed, unpacked

FIRST = 0


def exchanged(value: Any, group: Any) -> list[Any]:
    """(n_ranks,) what each rank has given, for every rank.

    Args:
        value: this rank's.
        group: of all ranks.
    """
    distributed: Any = torch.distributed
    own, n_ranks = distributed.get_rank(group), distributed.get_world_size(group)
    data, tensors = packed(value)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(n_ranks)]
    distributed.all_gather(lengths, torch.tensor([len(data)]), group=group)
    return [
        _spread(rank, int(lengths[rank]), (data, tensors) if rank == own else None, group) for rank in range(n_ranks)
    ]


def shared(value: Any, group: Any) -> Any:
    """What the first rank has given, for every rank; the others' value is not looked at."""
    distributed: Any = torch.distributed
    own = packed(value) if distributed.get_rank(group) == FIRST else None
    length = torch.tensor([0 if own is None else len(own[0])])
    distributed.broadcast(length, FIRST, group=group)
    return _spread(FIRST, int(length), own, group)


def gathered(value: Any, group: Any) -> list[Any]:
    """(n_ranks,) what each rank has given, for the first rank; nothing for the others."""
    distributed: Any = torch.distributed
    if distributed.get_rank(group) != FIRST:
        data, tensors = packed(value)
        distributed.send(torch.tensor([len(data)]), FIRST, group=group)
        for one in (_text(data), *map(_flat, tensors)):
            if one.numel():
                distributed.send(one, FIRST, group=group)
        return []
    return [value, *(_received(rank, group) for rank in range(1, distributed.get_world_size(group)))]


def _spread(source: int, length: int, own: tuple[bytes, list[torch.Tensor]] | None, group: Any) -> Any:
    """A value of one rank, given to the others or taken from it."""
    distributed: Any = torch.distributed
    data, tensors = own if own is not None else (bytes(length), [])
    text, waiting = _text(data), iter(tensors)
    distributed.broadcast(text, source, group=group)

    def read(empty: torch.Tensor) -> torch.Tensor:
        tensor: torch.Tensor = next(waiting, empty)
        if tensor.numel():
            distributed.broadcast(_flat(tensor), source, group=group)
        return tensor

    return unpacked(bytes(text.numpy()), read)


def _received(source: int, group: Any) -> Any:
    """A value that one rank sends."""
    distributed: Any = torch.distributed
    length = torch.zeros(1, dtype=torch.int64)
    distributed.recv(length, source, group=group)
    text = _text(bytes(int(length)))
    distributed.recv(text, source, group=group)

    def read(empty: torch.Tensor) -> torch.Tensor:
        if empty.numel():
            distributed.recv(_flat(empty), source, group=group)
        return empty

    return unpacked(bytes(text.numpy()), read)


def _text(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
