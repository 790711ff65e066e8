"""Tables, there and back."""

from __future__ import annotations

import pandas as pd
import pytest

import explorer as ex
from explorer.errors import CircularWaitError, InputError, ProgramError

ROWS = [(0, 0, "F", 0, 0), (0, 5, "B", 0, 0), (1, 0, "F", 1, 0), (1, 1, "B", 1, 0)]
COLUMNS = ["rank", "slot", "kind", "stage", "micro_batch"]


def table(*rows: tuple[object, ...], columns: list[str] = COLUMNS) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=pd.Index(columns))


def test_rows_in_any_order_and_gaps_between_slots_do_not_matter() -> None:
    program = ex.from_frame(table(*reversed(ROWS)), name="mine")
    assert (str(program), program.name) == ("rank 0: 0F0 0B0\nrank 1: 1F0 1B0", "mine")
    assert ex.check(program) is program


def test_actions_with_one_slot_begin_together_and_segments_are_read() -> None:
    order = [("F", 0, 0, 0), ("F", 0, 1, 1), ("F", 1, 0, 2), ("B", 0, 1, 2), ("F", 1, 1, 3)]
    order += [("B", 0, 0, 4), ("B", 1, 1, 5), ("B", 1, 0, 6)]
    rows = [(0, slot, kind, 0, micro_batch, segment) for kind, micro_batch, segment, slot in order]
    program = ex.from_frame(table(*rows, columns=[*COLUMNS, "segment"]))
    assert str(program) == "rank 0: 0F0 0F0.1 (0F1;0B0.1) 0F1.1 0B0 0B1.1 0B1"
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
        (table(), "has 1 to 2,000,000 rows; got 0"),
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


def test_waits_capacities_and_weight_versions_go_with_the_table() -> None:
    line = ex.schedule("forward_only", n_ranks=2, n_micro_batches=2, buffers=1).with_waits(("1F0", "0F1", 1.0))
    frame = line.to_frame()
    assert frame.attrs == {"waits": [("1F0", "0F1", 1.0)], "capacities": [1]}
    assert ex.simulate(ex.from_frame(frame)).makespan == ex.simulate(line).makespan == 5.0
    kept = ex.from_frame(ex.schedule("pipedream", n_ranks=3, n_micro_batches=4).to_frame())
    assert kept.weight_versions is not None
    assert kept.weight_versions.tolist() == [3, 2, 1]


def test_the_peer_of_a_message_past_the_next_stage_is_read() -> None:
    rows = [(0, 0, "F", 0, 0, None), (0, 1, "SEND_F", 0, 0, 2), (1, 0, "F", 1, 0, -1)]
    rows += [(2, 0, "RECV_F", 2, 0, "0"), (2, 1, "F", 2, 0, "")]
    program = ex.from_frame(table(*rows, columns=[*COLUMNS, "peer"]))
    assert str(program) == "rank 0: 0F0 0SEND_F0@2\nrank 1: 1F0\nrank 2: 2RECV_F0@0 2F0"
    assert not ex.check_messages(program).hangs


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"waits": 5}, r"waits in a table's attrs are a list of .*; got int"),
        ({"waits": [("0F0", "9F9", 1.0)]}, "has no 9F9; name others"),
        ({"waits": [5]}, "a wait is two actions and seconds, .* got 5"),
        ({"capacities": [1, 2, 3]}, r"capacities are 1 counts of 0 or more, .* got \[1, 2, 3\]"),
        ({"capacities": "many"}, "capacities in a table's attrs are whole numbers of at least 0; got many"),
        ({"weight_versions": [0.5]}, r"weight_versions in a table's attrs are whole numbers .* got \[0\.5\]"),
    ],
)
def test_what_a_table_holds_besides_rows_is_checked(attrs: dict[str, object], message: str) -> None:
    frame = table(*ROWS)
    frame.attrs.update(attrs)
    with pytest.raises((InputError, ProgramError), match=message):
        ex.from_frame(frame)


def test_a_peer_of_something_else_than_a_message_is_refused() -> None:
    rows = [(*row, 1) for row in ROWS]
    with pytest.raises(InputError, match=r"peer is of sends and receives only, .* got '1' in row 0"):
        ex.from_frame(table(*rows, columns=[*COLUMNS, "peer"]))


def test_a_table_that_hangs_is_refused() -> None:
    with pytest.raises(CircularWaitError, match="wait for each other"):
        ex.from_frame(table((0, 0, "B", 0, 0), (0, 1, "F", 0, 0)))
