"""`explorer compare` against figures worked out by hand."""

import json

import pytest

import explorer as ex
from explorer.cli import main


def answer(capsys, *flags):
    assert main(["compare", *flags, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def by_name(values):
    return {row["schedule"]: row for row in values["schedules"]}


def test_compare_gives_the_papers_figures(capsys):
    # makespan 8·3 + 9, + 9, + 9/2, + 9/3; GPipe holds M, 1F1B and ZB-H1 P
    rows = by_name(answer(capsys, "--ranks", "4", "--micro-batches", "8"))
    assert {name: row["makespan"] for name, row in rows.items()} == {
        **{"gpipe": 33, "1f1b": 33},
        **{"interleaved_1f1b": 28.5, "zb_h1": 27},
    }
    assert [rows[name]["peak_in_flight"] for name in ("gpipe", "1f1b", "zb_h1")] == [8, 4, 4]
    assert rows["1f1b"]["bubble_ratio"] == pytest.approx(3 / 11)
    assert rows["zb_h1"]["over_best"] == 0


def test_compare_says_in_json_what_is_not_there(capsys):
    rows = by_name(answer(capsys, "--schedules", "1f1b, dualpipe", "--micro-batches", "6"))
    assert rows["dualpipe"]["makespan"] is None
    assert "at least 8" in rows["dualpipe"]["reason"]
    assert rows["1f1b"]["reason"] == ""


def test_compare_counts_bytes_within_a_limit(capsys):
    flags = ("--activation-bytes", "100", "--parameter-bytes", "10", "--memory-limit", "500")
    rows = by_name(answer(capsys, "--schedules", "gpipe,1f1b", *flags))
    assert [rows[name]["peak_bytes"] for name in ("gpipe", "1f1b")] == [820, 420]
    assert [rows[name]["legal"] for name in ("gpipe", "1f1b")] == [False, True]
    rows = by_name(answer(capsys, "--schedules", "gpipe,1f1b", *flags, "--optimizer-bytes", "81"))
    assert [rows[name]["peak_bytes"] for name in ("gpipe", "1f1b")] == [901, 501]
    assert not rows["1f1b"]["legal"]


def test_compare_prints_a_table_and_what_is_wrong_below_it(capsys):
    assert main(["compare", "--schedules", "gpipe,dualpipe", "--micro-batches", "6"]) == 0
    out = capsys.readouterr().out
    assert "4 ranks, 6 micro-batches, the same work for every rank" in out
    assert out.split("gpipe")[1].split()[:5] == ["1", "27", "0.0%", "33.3%", "50.0%"]  # (P−1)/(M+P−1), (P−1)/M
    assert "\ndualpipe: dualpipe needs" in out
    assert "peak memory" not in out  # no bytes were given


def test_compare_writes_a_page(capsys, tmp_path):
    page = tmp_path / "page.html"
    answer(capsys, "--schedules", "1f1b,zb_h1", "--html", str(page))
    assert "zb_h1 takes 18.2% less time than 1f1b" in page.read_text(encoding="utf-8")


@pytest.fixture
def saved(tmp_path):
    def save(name, schedule="1f1b", **costs):
        path = tmp_path / name
        ex.save(ex.simulate(ex.schedule(schedule, n_ranks=4, n_micro_batches=8), ex.Costs(**costs)), path)
        return str(path)

    return save


def test_compare_takes_traces_in_files(capsys, saved):
    # (M + P − 1) · 0.5, and 16 times the latency
    values = answer(capsys, saved("a.json"), saved("b.json.gz", backward=2.5, latency=0.25))
    assert [row["makespan"] for row in values["traces"]] == [33, 42.5]
    assert [row["file"] for row in values["traces"]] == ["a.json", "b.json.gz"]
    assert values["difference"] == {
        **{"predicted": 33, "measured": 42.5, "total": 9.5},
        **{"durations": 5.5, "transfers": 4, "order": 0, "host": 0},
    }


def test_compare_tells_of_files_in_words(capsys, saved, tmp_path):
    page = tmp_path / "page.html"
    assert main(["compare", saved("a.json"), saved("b.json", backward=2.5), "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert "b.json takes 16.7% more time than a.json: 38.5 instead of 33" in out
    assert "38.5 instead of 33: +5.5 for actions that took other times" in out
    assert "a.json" in page.read_text(encoding="utf-8")


def test_compare_of_other_actions_has_makespans_and_says_why_no_more(capsys, saved):
    values = answer(capsys, saved("a.json"), saved("b.json", "zb_h1"))
    assert [row["makespan"] for row in values["traces"]] == [33, 27]
    assert "0B0, which only the first has" in values["difference"]["reason"]
    three = answer(capsys, saved("a.json"), saved("b.json"), saved("c.json"))
    assert three["difference"]["reason"] == "a difference is explained between two traces; got 3"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--schedules 1f1", "did you mean 1f1b"),
        ("--ranks 0", "n_ranks is a whole number of at least 1; got 0"),
        ("--ranks 5000", "a command lays out at most 4096 ranks"),
        ("--memory-limit 0", "memory_limit is bytes of a rank, above 0"),
        ("--schedules 1f1b --html page.html", "needs two schedules that are legal here; got 1"),
        ("one.json", "traces are compared with one another; got one file"),
        ("one.json two.json --ranks 3", "got --ranks too; leave it out"),
        ("one.json two.json", "one.json"),
    ],
)
def test_what_compare_refuses_is_one_sentence(capsys, monkeypatch, tmp_path, flags, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *flags.split()]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err


def test_compare_refuses_a_program_among_traces(capsys, saved, tmp_path):
    ex.save(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2), tmp_path / "order.csv")
    assert main(["compare", saved("a.json"), str(tmp_path / "order.csv")]) == 2
    assert "order.csv holds a program; simulate it and save that" in capsys.readouterr().err


def test_what_the_difference_of_two_leaves_out_is_told(capsys, tmp_path):
    bare = ex.schedule("naive", n_ranks=1, n_micro_batches=1)
    reduced = ex.Program.from_orders("recorded", bare.placement, 1, ["0F0 0B0 0G"])
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    for program, file in zip((bare, reduced), files, strict=True):
        ex.save(ex.simulate(program), file)
    assert answer(capsys, *files)["difference"]["left_out"] == ["G"]
    main(["compare", *files])
    assert "left out: the two have not the same G actions" in capsys.readouterr().out


def test_a_schedule_named_twice_or_not_at_all_is_refused(capsys):
    assert main(["compare", "--schedules", "1f1b, gpipe,1f1b"]) == 2
    assert "--schedules names each schedule once; got 1f1b again; leave it out" in capsys.readouterr().err
    assert main(["compare", "--schedules", ""]) == 2
    assert "a schedule is one of naive, " in capsys.readouterr().err
