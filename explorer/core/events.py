"""The two tables a Trace is made of: events, and changes of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from explorer.core.action import Kind

if TYPE_CHECKING:
    import pandas as pd


class Origin(IntEnum):
    """Where a row's numbers come from."""

    SIMULATED = 0
    MEASURED = 1
    MODELLED = 2  # worked out, within a run whose other rows were measured
    IMPORTED = 3
    GUESSED = 4


class Stream(IntEnum):
    """What on a rank is busy: its device, or the link it sends over."""

    COMPUTE = 0
    SEND = 1
    RECEIVE = 2


class Category(IntEnum):
    """What memory is held for."""

    PARAMETERS = 0
    GRADIENTS = 1
    OPTIMIZER = 2
    ACTIVATIONS = 3
    WEIGHT_GRADIENTS = 4  # kept between I and W
    RECEIVE_BUFFERS = 5


class _Columns:
    """A table: a frozen dataclass whose fields are columns of equal length, each of a declared dtype."""

    DTYPES: dict[str, str]

    @classmethod
    def of(cls, **columns: npt.ArrayLike) -> Self:
        """A table from columns; a scalar holds for every row, and what is left out gets its default."""
        n = max((np.asarray(column).size for column in columns.values()), default=0)
        n = 0 if any(np.asarray(column).shape == (0,) for column in columns.values()) else n
        filled = {}
        for name, dtype in cls.DTYPES.items():
            value = np.asarray(columns.pop(name, _DEFAULTS.get(name, 0)), dtype)
            filled[name] = np.ascontiguousarray(np.broadcast_to(value, n))
        if columns:
            raise TypeError(f"{cls.__name__} has no column {sorted(columns)[0]!r}")
        return cls(**filled)

    @classmethod
    def concatenate(cls, *tables: Self) -> Self:
        """The rows of all `tables`, in order."""
        filled = [table for table in tables if len(table)]
        if len(filled) == 1:
            return filled[0]
        return cls(**{name: np.concatenate([getattr(t, name) for t in tables]) for name in cls.DTYPES})

    def take(self, rows: npt.NDArray[Any] | slice) -> Self:
        """The given rows: indices, a mask or a slice."""
        return type(self)(**{name: column[rows] for name, column in self.columns().items()})

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Name → column."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.DTYPES))))

    def to_frame(self) -> pd.DataFrame:
        """As a DataFrame, with codes spelled out."""
        import pandas as pd

        spelled = {name: _spell(name, column) for name, column in self.columns().items()}
        return pd.DataFrame(spelled)


@dataclass(frozen=True, eq=False)
class Events(_Columns):
    """What happened: one row an action or message; −1 = does not apply.

    Attributes:
        step: int32, number of the training step, from 0.
        rank: int32, the pipeline rank; of a message, the sender.
        stage: int32, the stage.
        micro_batch: int32, the micro-batch.
        segment: int32, part of the sequence; 0 where it is not cut.
        kind: int8, a Kind.
        slot: int32, the slot of its rank's order that it belongs to.
        stream: int8, a Stream.
        start: float64, seconds.
        end: float64, seconds.
        wait: float64, seconds before the start in which nothing ran on its rank for want of what it needed; of a
            receive, those before the data left the peer.
        bytes: int64, that a message carries.
        peer: int32, rank at the other end of a message.
        origin: int8, an Origin.
    """

    step: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int32]
    stage: npt.NDArray[np.int32]
    micro_batch: npt.NDArray[np.int32]
    segment: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int8]
    slot: npt.NDArray[np.int32]
    stream: npt.NDArray[np.int8]
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    wait: npt.NDArray[np.float64]
    bytes: npt.NDArray[np.int64]
    peer: npt.NDArray[np.int32]
    origin: npt.NDArray[np.int8]

    DTYPES = {
        **dict.fromkeys(("step", "rank", "stage", "micro_batch", "segment"), "int32"),
        **{"kind": "int8", "slot": "int32", "stream": "int8"},
        **dict.fromkeys(("start", "end", "wait"), "float64"),
        **{"bytes": "int64", "peer": "int32", "origin": "int8"},
    }


@dataclass(frozen=True, eq=False)
class MemoryChanges(_Columns):
    """How much memory was taken (positive) or given back (negative), when and for what.

    Attributes:
        step: int32, number of the training step, from 0.
        time: float64, seconds.
        rank: int32, the pipeline rank.
        category: int8, a Category.
        stage: int32, the stage, or −1.
        micro_batch: int32, the micro-batch, or −1.
        delta: int64, bytes.
        origin: int8, an Origin.
    """

    step: npt.NDArray[np.int32]
    time: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int32]
    category: npt.NDArray[np.int8]
    stage: npt.NDArray[np.int32]
    micro_batch: npt.NDArray[np.int32]
    delta: npt.NDArray[np.int64]
    origin: npt.NDArray[np.int8]

    DTYPES = {
        **{"step": "int32", "time": "float64", "rank": "int32", "category": "int8"},
        **{"stage": "int32", "micro_batch": "int32", "delta": "int64", "origin": "int8"},
    }


_DEFAULTS: Mapping[str, int] = {"peer": -1, "stage": -1, "micro_batch": -1, "slot": -1}
_CODES = {"kind": Kind, "stream": Stream, "category": Category, "origin": Origin}


def _spell(name: str, column: npt.NDArray[Any]) -> Any:
    if name not in _CODES:
        return column
    import pandas as pd

    names = [str(code.name) if name == "kind" else str(code.name).lower() for code in _CODES[name]]
    return pd.Categorical.from_codes(column, categories=names)  # type: ignore[call-overload]
