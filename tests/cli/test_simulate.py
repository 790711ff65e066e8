"""`explorer simulate` against figures worked out by hand from the published formulas."""

import json
import subprocess
import sys

import pytest

from explorer.cli import main
from tests.io.orders import TORCH_1F1B, TORCH_DUALPIPEV_MESSAGES, TORCH_INTERLEAVED


def answer(capsys, *flags):
    assert main(["simulate", *flags, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


FOUR_BY_EIGHT = ("--ranks", "4", "--micro-batches", "8", "--forward", "1", "--backward", "2")


def test_simulate_1f1b_gives_the_papers_figures(capsys):
    # makespan (M+P−1)(F+B) = 11·3; bubble (P−1)/(M+P−1) = 3/11; overhead (P−1)/M = 3/8; idle (P−1)(F+B) = 9
    values = answer(capsys, "--schedule", "1f1b", *FOUR_BY_EIGHT, "--latency", "0")
    assert values["makespan"] == 33
    assert values["bubble_ratio"] == pytest.approx(3 / 11)
    assert values["bubble_overhead"] == pytest.approx(3 / 8)
    assert values["idle_per_rank"] == [9, 9, 9, 9]
    assert values["peak_in_flight"] == [4, 3, 2, 1]


def test_simulate_gpipe_differs_only_in_what_is_in_flight(capsys):
    values = answer(capsys, "--schedule", "gpipe", *FOUR_BY_EIGHT)
    assert (values["makespan"], values["peak_in_flight"]) == (33, [8, 8, 8, 8])


def test_simulate_naive_idles_three_quarters_on_four_ranks(capsys):
    assert answer(capsys, "--schedule", "naive", *FOUR_BY_EIGHT)["bubble_ratio"] == pytest.approx(3 / 4)


def test_simulate_takes_costs_per_stage(capsys):
    # bubble (P−1)(F+B)/v of a rank's share: 24 + 9/2
    flags = ("--schedule", "interleaved_1f1b", "--chunks", "2", "--forward", "0.5", "--backward", "1")
    assert answer(capsys, "--ranks", "4", "--micro-batches", "8", *flags)["makespan"] == 28.5


# 1F1B: 33 + (2(P−1) + 2⌊(M−1)(P−1)/P⌋)·c = 33 + 16/4; GPipe: 33 + 2(P−1)c = 33 + 6/4
@pytest.mark.parametrize(("name", "makespan"), [("1f1b", 37), ("gpipe", 34.5)])
def test_simulate_adds_latency_where_messages_are_waited_for(capsys, name, makespan):
    assert answer(capsys, "--schedule", name, *FOUR_BY_EIGHT, "--latency", "0.25")["makespan"] == makespan


def test_simulate_bytes_over_bandwidth_count_as_latency(capsys):
    flags = ("--bandwidth", "1000", "--message-bytes", "250")
    assert answer(capsys, "--schedule", "1f1b", *FOUR_BY_EIGHT, *flags)["makespan"] == 37


def test_simulate_64_micro_batches_on_8_ranks(capsys):
    assert answer(capsys, "--ranks", "8", "--micro-batches", "64")["makespan"] == 213  # (64+7)·3


def test_simulate_prints_a_table_and_the_drawn_pipeline(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["simulate", "--schedule", "gpipe", "--ranks", "2", "--micro-batches", "2"]) == 0
    out = capsys.readouterr().out
    assert "makespan  9" in out
    assert "33.3% of ranks × makespan; 50.0% of busy time" in out
    assert out.rstrip().endswith("rank 0  F0F1      B0--B1--\nrank 1    F0F1B0--B1--")


def test_simulate_draws_nothing_that_does_not_fit(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["simulate", "--micro-batches", "200"]) == 0
    assert "F0" not in capsys.readouterr().out


def test_simulate_writes_a_page_that_needs_no_network(capsys, tmp_path):
    page = tmp_path / "run.html"
    answer(capsys, "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert "<script src" not in text
    assert "1f1b" in text


def test_module_is_the_same_command():
    done = subprocess.run([sys.executable, "-m", "explorer", "simulate", "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)["makespan"] == 33


@pytest.fixture
def order(tmp_path):
    def write(text):
        path = tmp_path / "order.csv"
        path.write_text(text)
        return str(path)

    return write


def test_simulate_reads_an_order_that_torch_wrote(capsys, order):
    # interleaved 1F1B on 2 ranks, 2 chunks, 4 micro-batches: M·v·(F+B) of a stage and the bubble (P−1)(F+B) of one
    flags = ("--program", order(TORCH_INTERLEAVED), "--forward", "0.5", "--backward", "1")
    values = answer(capsys, *flags)
    assert (values["makespan"], values["schedule"], values["n_stages"]) == (13.5, "order", 4)


def test_simulate_says_what_of_an_order_it_leaves_out(capsys, order):
    assert main(["simulate", "--program", order(TORCH_DUALPIPEV_MESSAGES), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["n_micro_batches"] == 4
    assert err == "explorer: order.csv: 8 cells of UNSHARD and RESHARD are left out; a program holds no sharding\n"


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (TORCH_1F1B, (), "got 3F8, which is outside; 3F0 is missing; 3B0 in slot 1 so comes before its forward"),
        ("0F0,0Q0\n", (), "got '0Q0' in order.csv, line 1, column 2"),
        (
            "0F0,0B0\n",
            ("--ranks", "2"),
            "--program names the whole order, so nothing else chooses one; got --ranks too",
        ),
        ("0F0,0B0\n", ("--micro-batches", "2"), "got --micro-batches too; leave it out"),
    ],
)
def test_simulate_refuses_an_order_in_one_sentence(capsys, order, text, flags, message):
    assert main(["simulate", "--program", order(text), *flags]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_options_of_a_schedule_are_passed_on(capsys):
    # one more warm-up forward hides the latency: 37 → 34.5 (AI-Infra-Team/awesome-papers#87)
    line = "simulate --schedule 1f1b --ranks 4 --micro-batches 8 --latency 0.25 --json"
    assert main(line.split()) == 0
    assert json.loads(capsys.readouterr().out)["makespan"] == 37
    assert main([*line.replace("1f1b", "eager_1f1b").split()]) == 0
    assert json.loads(capsys.readouterr().out)["makespan"] == 34.5
    assert main([*line.split(), "--option", "dialect=megatron", "--option", "warm_up"]) == 2
    assert "options read name=value" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["n_ranks=3", "name=3", "n_chunks=1", "n_micro_batches=3"])
def test_counts_are_no_options(capsys, option):
    assert main(["simulate", "--option", option]) == 2
    assert "has a flag or field of its own" in capsys.readouterr().err


def test_ranks_of_a_node_share_links(capsys):
    # 1F1B of 4 × 8 with messages of 2 s: 65 alone; where the ways out and in of two nodes are shared, some meet
    flags = (*FOUR_BY_EIGHT, "--bandwidth", "0.5", "--message-bytes", "1")
    assert answer(capsys, *flags)["makespan"] == 65
    assert answer(capsys, *flags, "--ranks-per-node", "2")["makespan"] == 66.5
    assert answer(capsys, *flags, "--ranks-per-node", "4")["makespan"] == 65
    assert main(["simulate", *flags, "--ranks-per-node", "-1"]) == 2
    assert "--ranks-per-node is a whole number of at least 0; got -1; try 8" in capsys.readouterr().err
    assert main(["simulate", *FOUR_BY_EIGHT, "--ranks-per-node", "2"]) == 0
    assert "give --message-bytes and --bandwidth" in capsys.readouterr().out


def test_the_optimizer_comes_behind_the_makespan(capsys):
    values = answer(capsys, *FOUR_BY_EIGHT, "--optimizer", "1.5")
    assert (values["makespan"], values["step_seconds"]) == (33, 34.5)
    assert answer(capsys, *FOUR_BY_EIGHT)["step_seconds"] == 33
    assert main(["simulate", *FOUR_BY_EIGHT, "--optimizer", "1.5"]) == 0
    assert "with the optimizer, which the makespan leaves out, a step takes 34.5" in capsys.readouterr().out
    assert main(["simulate", "--schedule", "forward_only", "--optimizer", "1"]) == 2
    assert "an optimizer needs gradients" in capsys.readouterr().err


def test_few_micro_batches_are_remarked_on(capsys):
    # pytorch/torchtitan#781: M = 4 is below P·v = 8
    line = "simulate --schedule interleaved_1f1b --ranks 4 --micro-batches 4"
    assert main(line.split()) == 0
    assert "4 micro-batches are fewer than the 8 stages" in capsys.readouterr().out


def test_simulate_holds_memory_against_a_limit(capsys):
    # 1F1B's rank r keeps P − r micro-batches; parameters, gradients and Adam's state besides: 10 + 10 + 20
    flags = ("--activation-bytes", "100", "--parameter-bytes", "10", "--optimizer-bytes", "20")
    assert answer(capsys, *FOUR_BY_EIGHT, *flags)["peak_bytes"] == [440, 340, 240, 140]
    assert main(["simulate", *FOUR_BY_EIGHT, *flags, "--memory-limit", "300"]) == 0
    out = capsys.readouterr().out
    assert "2 ranks hold more than the limit of 300 bytes; rank 0 by 140 bytes" in out
    assert "peak memory" in out
    assert main(["simulate", *FOUR_BY_EIGHT, *flags, "--memory-limit", "440"]) == 0
    assert "every rank stays within its 440 bytes" in capsys.readouterr().out


def test_simulate_says_that_a_limit_needs_bytes(capsys):
    assert main(["simulate", *FOUR_BY_EIGHT, "--memory-limit", "80e9"]) == 0
    assert "no bytes to hold against the 74.51 GiB of a rank" in capsys.readouterr().out
    assert main(["simulate", "--memory-limit", "0"]) != 0
    assert "above 0; got 0" in capsys.readouterr().err
