"""Tables, there and back."""

from __future__ import annotations

import pandas as pd
import pytest

import explorer as ex
from explorer.errors import InputError, ProgramError

ROWS = [(0, 0, "F", 0, 0), (0, 5, "B", 0, 0), (1, 0, "F", 1, 0), (1, 1, "B", 1, 0)]
COLUMNS = ["rank", "slot", "kind", "stage", "micro_batch"]


def table(*rows: tuple[object, ...], columns: list[str] = COLUMNS) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=pd.Index(columns))


def test_rows_in_any_order_and_gaps_between_slots_do_not_matter() -> None:
    program = ex.from_frame(table(*reversed(ROWS)), name="mine")
    assert (str(program), program.name) == ("rank 0: 0F0 0B0\nrank 1: 1F0 1B0", "mine")
    assert ex.check(program) is program


def test_actions_with_one_slot_begin_together_and_segments_are_read() -> None:
    rows = [(0, 0, "F", 0, 0, 0), (0, 1, "F", 0, 0, 1), (0, 1, "B", 0, 0, 1), (0, 2, "B", 0, 0, 0)]
    program = ex.from_frame(table(*rows, columns=[*COLUMNS, "segment"]))
    assert str(program) == "rank 0: 0F0 (0F0.1;0B0.1) 0B0"
    assert program.n_segments == 2


def test_numbers_may_come_as_text_as_from_a_csv_and_updates_without_a_micro_batch() -> None:
    rows = [("0", "0", "F", "0", "0"), ("0", "1", "B", "0", "0"), ("0", "2", "U", "0", ""), ("0", "3", "U", "0", "-1")]
    assert str(ex.from_frame(table(*rows))) == "rank 0: 0F0 0B0 0U 0U"


def test_a_traces_program_survives_its_table() -> None:
    program = ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=4)
    again = ex.from_frame(program.to_frame())
    assert ex.simulate(again).makespan == ex.simulate(program).makespan


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ([1, 2], "a table is a pandas DataFrame; got list"),
        (
            table(*ROWS).drop(columns="slot"),
            "has the columns rank, slot, .*; got rank, kind, stage, micro_batch; add slot",
        ),
        (table(*ROWS)[["rank", *COLUMNS]], "a column is there once; got rank again"),
        (table(), "has 1 to 20,000,000 rows; got 0"),
        (table((0, 0, "X", 0, 0)), "kind is one of F, B, I, .*; got 'X' in row 0; correct that row"),
        (table((0, 0, [1], 0, 0)), r"kind is one of .*; got '\[1\]' in row 0"),
        (table(*ROWS, (1, 2, "F", [1], 0)), r"stage is a whole number of at least 0; got '\[1\]' in row 4"),
        (table((0, 0, None, 0, 0)), "kind is one of .*; got 'None' in row 0"),
        (table(*ROWS, (1, 2.5, "F", 0, 0)), "slot is a whole number of at least 0; got '2.5' in row 4"),
        (table(*ROWS, (1, 2, "F", -1, 0)), "stage is a whole number of at least 0; got '-1' in row 4"),
        (table(*ROWS, (1, 2, "F", 0, float("nan"))), "micro_batch is a whole number of at least 0; got 'nan' in row 4"),
        (table(*ROWS, (1, 2, "F", 0, "=1+1")), "micro_batch is a whole number .* got '=1\\+1' in row 4"),
        (table(*ROWS, (1, 2, "F", 2**40, 0)), "stage is a whole number .* got '1099511627776' in row 4"),
        (table(*ROWS, (7, 2, "F", 0, 0)), "rank is numbered from 0 without a gap, and there is no rank 2; got '7'"),
    ],
)
def test_from_frame_names_the_row_it_cannot_read(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ex.from_frame(frame)


def test_a_table_that_is_no_whole_program_is_refused() -> None:
    with pytest.raises(ProgramError, match="got 9F0 but nothing of stage 2; number the stages 0–2"):
        ex.from_frame(table(*ROWS, (1, 2, "F", 9, 0)))
