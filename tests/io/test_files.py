"""Loading and saving: torch's own exports, every schedule there and back, and what is refused."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import explorer as ex
from explorer.core import message_pairs
from explorer.errors import CircularWaitError, ExplorerError, InputError, ProgramError
from explorer.schedules import REGISTRY
from tests.io.orders import TORCH_1F1B, TORCH_DUALPIPEV, TORCH_DUALPIPEV_MESSAGES, TORCH_INTERLEAVED
from tests.schedules.test_family import legal

NAMES = sorted(REGISTRY)


def written(folder: Path, text: str, name: str = "order.csv") -> Path:
    path = folder / name
    path.write_bytes(text.replace("\n", "\r\n").encode())
    return path


def same(one: ex.Program, other: ex.Program) -> None:
    """Same orders, numbers and placement; their names and further waits may differ."""
    assert str(one) == str(other)
    assert (one.n_ranks, one.n_stages, one.n_micro_batches) == (other.n_ranks, other.n_stages, other.n_micro_batches)
    assert one.n_segments == other.n_segments
    pairs = np.meshgrid(np.arange(one.n_stages), np.arange(one.n_micro_batches))
    assert (one.placement.rank_of(*pairs) == other.placement.rank_of(*pairs)).all()


@given(st.sampled_from(NAMES), st.integers(1, 6), st.integers(1, 10), st.integers(1, 3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_schedule_comes_back_from_csv_table_and_drawing(
    tmp_path: Path, name: str, n_ranks: int, n_micro_batches: int, n_chunks: int
) -> None:
    whole = legal(name, n_ranks, n_micro_batches, n_chunks)
    table = ex.from_frame(whole.to_frame().sort_values(["slot", "rank"], kind="stable"))  # rows in any order
    same(table, whole)
    for one, other in ((table.waits, whole.waits), (table.weight_versions, whole.weight_versions)):
        assert np.array_equal(one, other) if other is not None else one is None
    # waits and weight versions are not in the others, and a warning says so
    program = dataclasses.replace(whole, waits=None, weight_versions=None)
    ex.save(program, tmp_path / "order.csv")
    same(ex.load(tmp_path / "order.csv"), program)
    same(ex.from_grid(ex.to_grid(program)), program)
    same(ex.from_grid(str(program)), program)


@given(st.sampled_from(NAMES), st.integers(1, 4), st.integers(1, 6), st.integers(1, 2))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_messages_come_back_from_all_three_between_the_same_ranks(
    tmp_path: Path, name: str, n_ranks: int, n_micro_batches: int, n_chunks: int
) -> None:
    whole = legal(name, n_ranks, n_micro_batches, n_chunks)
    program = ex.add_messages(dataclasses.replace(whole, waits=None, weight_versions=None))
    ex.save(program, tmp_path / "order.csv")
    for again in (ex.load(tmp_path / "order.csv"), ex.from_frame(program.to_frame()), ex.from_grid(str(program))):
        same(again, program)
        for one, other in zip(message_pairs(again), message_pairs(program), strict=True):
            assert (one == other).all()


@pytest.mark.parametrize("text", [TORCH_INTERLEAVED, TORCH_DUALPIPEV])
def test_torchs_own_export_is_read_and_written_as_torch_writes_it(tmp_path: Path, text: str) -> None:
    program = ex.load(written(tmp_path, text))
    assert (program.n_ranks, program.n_stages, program.n_micro_batches) == (2, 4, 4)
    ex.save(program, tmp_path / "again.csv")
    idle_apart = "\n".join(",".join(filter(None, row.split(","))) for row in text.splitlines()) + "\n"
    assert (tmp_path / "again.csv").read_bytes().decode() == idle_apart.replace("\n", "\r\n")


def test_overlaps_of_torch_are_one_slot_on_a_v_shaped_placement(tmp_path: Path) -> None:
    program = ex.load(written(tmp_path, TORCH_DUALPIPEV))
    assert program.placement.routes.tolist() == ex.Placement.v_shaped(2).routes.tolist()
    assert str(program.order(0)[7]) == "(0F3;3B1)"
    assert (program.n_actions, program.n_slots) == (37, 31)


def test_messages_and_reductions_of_torch_are_kept_and_sharding_is_left_out_with_a_word(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"order\.csv: 8 cells of UNSHARD and RESHARD are left out"):
        program = ex.load(written(tmp_path, TORCH_DUALPIPEV_MESSAGES))
    kinds = [program.action(i).kind.name for i in range(program.n_actions)]
    # 4 micro-batches cross the boundaries 0→1 and 2→3 forward and back; stages 1 and 2 share a rank
    assert {kind: kinds.count(kind) for kind in set(kinds) if "_" in kind or kind == "G"} == {
        **{"SEND_F": 8, "RECV_F": 8, "SEND_B": 8, "RECV_B": 8, "G": 4}
    }
    ex.save(program, tmp_path / "again.csv")
    assert "3SEND_B3,3REDUCE_GRAD,0RECV_B3,0I2" in (tmp_path / "again.csv").read_text()
    same(ex.load(tmp_path / "again.csv"), program)


def test_torchs_1f1b_is_refused_with_its_three_faults(tmp_path: Path) -> None:
    # torch 2.13: F0 missing, F8 invented for 8 micro-batches, B0 before any F0
    message = (
        r"torch\.csv: this program has stages 0–3 and micro-batches 0–7; got 3F8, which is outside; 3F0 is missing; "
        r"3B0 in slot 1 so comes before its forward; number the forwards 0–7 \(rank 3, slot 14: .*\[3F8\]"
    )
    with pytest.raises(ProgramError, match=message) as caught:
        ex.load(written(tmp_path, TORCH_1F1B, "torch.csv"))
    assert (caught.value.rank, caught.value.slot) == (3, 14)


def test_our_1f1b_is_the_same_order_without_the_faults(tmp_path: Path) -> None:
    ours = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    mended = [*TORCH_1F1B.splitlines()[:3], ",".join(f"3F{m},3B{m}" for m in range(8))]
    text = "\n".join(row.replace(f",{rank}REDUCE_GRAD", "") for rank, row in enumerate(mended))
    same(ex.load(written(tmp_path, text)), ours)


def test_segments_and_updates_are_written_in_our_own_words(tmp_path: Path) -> None:
    # the published Seq1F1B tables write segments so: <stage>F<micro-batch>.<segment>
    text = "0F0,0F0.1,0B0.1,0B0,0U"
    program = ex.load(written(tmp_path, text.replace("B", "BW")))  # as they write a full backward
    assert (program.n_segments, program.n_micro_batches) == (2, 1)
    ex.save(program, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text().strip() == text


def test_blank_cells_spaces_a_mark_and_lines_at_the_end_do_not_matter(tmp_path: Path) -> None:
    program = ex.load(written(tmp_path, '\ufeff 0F0 ,,"0B0"\n, 1F0,1B0,,\n\n\n', "ORDER.CSV"))
    assert str(program) == "rank 0: 0F0 0B0\nrank 1: 1F0 1B0"
    assert program.name == "ORDER"


def test_a_circle_in_a_file_is_named_with_its_chain(tmp_path: Path) -> None:
    message = r"order\.csv: .* rank 0 slot 1 0B0 waits for 1B0 → rank 1 slot 0 1F1 waits for 0F1"
    with pytest.raises(CircularWaitError, match=message):
        ex.load(written(tmp_path, "0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0F0,0X1\n",
            r"got '0X1' in order\.csv, line 1, column 2; the kinds are F, B, I, W, R, .*commas stand between",
        ),
        ("0F0\n1F0,\n2F0,,2F1x\n", r"got '2F1x' in order\.csv, line 3, column 3"),
        ("0F0;0B0\n", r"got '0F0;0B0' in order\.csv, line 1, column 1"),
        ("(0F0;)OVERLAP_F_B\n", r"got '\(0F0;\)OVERLAP_F_B' in order\.csv, line 1, column 1"),
        ("0F1234567890123\n", "got '0F1234567890123'"),
        ("0F٣\n", "got '0F٣' in"),  # another alphabet's 3
        ("0F0,<script>\n", "got '<script>' in"),
        ("__import__('os')\n", r"got .__import__\('os'\). in"),
        (f"0F0,{'9' * 5000}\n", f"got '{'9' * 40}' in"),
        ("", r"a row for each rank; got none in order\.csv; try 0F0,0B0"),
        ('0F0,"0B0\n', "an order is plain CSV; got order.csv, in which"),
        ("rank,slot,kind,stage,micro_batch\n0,0,F,0,0\n", r"got a table in order\.csv; try explorer\.from_frame"),
    ],
)
def test_a_cell_that_names_nothing_is_refused_with_line_and_column(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ex.load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0B0\n", "runs at least one forward; got none"),
        ("0F0,0B0\n7F0,7B0\n", r"numbered from 0 without a gap; got 7F0 but nothing of stage 1; .* \(rank 1, slot 0"),
        ("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n", "0B1 is missing from rank 0, which has 3 slots"),
        (
            "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,0F1\n",
            r"0F1 belongs on rank 0; move it there \(rank 1, slot 4: … 1B0 1F1 1B1 \[0F1\]",
        ),
        ("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,1F900000000\n", "micro-batches 0–1; got 1F900000000, which is outside"),
    ],
)
def test_an_order_that_is_no_whole_program_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        ex.load(written(tmp_path, text))


def test_ten_million_cells_are_refused_before_any_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, ("0X" + "," * 2_499_999 + "\n") * 4)
    with pytest.raises(
        InputError, match=r"at most 1,000,000 cells; got 10,000,001 in order\.csv; try fewer micro-batches"
    ):
        ex.load(path)


def test_a_file_too_large_for_any_order_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "order.csv"
    with path.open("wb") as file:
        file.truncate(2**40)  # takes no room: nothing is written
    with pytest.raises(InputError, match=r"at most 1024 MiB; got 'order\.csv' with 1048576 MiB"):
        ex.load(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("run.xlsx", r"loaded is an order as \.csv, .*, or a trace as \.json, .*; got 'run\.xlsx'; try to export"),
        ("order.pkl", "got 'order.pkl'"),
        ("order", "got 'order'"),
        ("nowhere.csv", r"must be there to be read; got '.*nowhere\.csv' \(No such file or directory\); try another"),
        ("folder.csv", r"a recording has a file rank-\*\.jsonl for each rank; got none in '.*folder\.csv'"),
        ("bytes.csv", "an order or a trace is text in UTF-8; got other bytes in 'bytes.csv'; export it again"),
        ("nul\0.csv", "must be there to be read"),
    ],
)
def test_load_refuses_what_is_no_order(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "bytes.csv").write_bytes(b"\x80\x04\xff")
    with pytest.raises(InputError, match=message):
        ex.load(tmp_path / path)


def test_what_has_no_end_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")  # nobody will ever write into it
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    for name in ("pipe.csv", "endless.json"):
        with pytest.raises(InputError, match=rf"an ordinary file; got '.*{name}', which is a pipe, a device"):
            ex.load(tmp_path / name)


@pytest.mark.parametrize(
    ("path", "message"), [(None, "a path; got NoneType"), (7, "a path; got int"), ("", "an empty")]
)
def test_load_refuses_what_names_no_file(path: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ex.load(path)  # type: ignore[arg-type]


def test_save_refuses_other_things_and_places(tmp_path: Path) -> None:
    program = ex.schedule("gpipe", n_ranks=2, n_micro_batches=2)
    for value, path, message in (
        (program, tmp_path / "order.xlsx", r"saved as an order as \.csv, .* got 'order\.xlsx'; try order\.csv"),
        ({}, tmp_path / "order.csv", "what is saved is a Program or a Trace; got dict"),
        (program, tmp_path / "nowhere" / "order.csv", r"where files can be written; got .* \(No such file"),
    ):
        with pytest.raises(InputError, match=message):
            ex.save(value, path)


def test_save_says_what_a_csv_does_not_hold(tmp_path: Path) -> None:
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=2)
    waits = ex.Waits(np.array([0]), np.array([1]), np.array([0.0]))
    held = dataclasses.replace(program, waits=waits, capacities=np.array([1]))
    with pytest.warns(UserWarning, match="a CSV holds orders only; its waits and capacities are left out"):
        ex.save(held, tmp_path / "order.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(ex.load(tmp_path / "order.csv"), program)


CELLS = st.builds(
    "{}{}{}".format, st.integers(0, 3), st.sampled_from(["F", "B", "I", "W", "SEND_F", "U"]), st.integers(0, 2)
)


@given(st.lists(st.lists(CELLS | st.text('0123FBIW();,. "\n\t', max_size=6), max_size=6), max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_file_says_it_is_read_or_refused_with_its_name(tmp_path: Path, rows: list[list[str]]) -> None:
    path = tmp_path / "order.csv"
    path.write_text("\n".join(map(",".join, rows)))
    try:
        assert ex.check(ex.load(path)).n_ranks <= len(path.read_text().splitlines()) + 1
    except ExplorerError as error:
        assert "order.csv" in str(error)  # noqa: PT017  either outcome is right
