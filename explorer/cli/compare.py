"""`explorer compare`: schedules at equal work, or traces in files."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from explorer.cli.arguments import Commands, add_link, add_nodes, check_size, links_of, number, whole
from explorer.cli.compare_traces import compare_files
from explorer.cli.output import table, to_json
from explorer.cli.sizes import add_bytes, bytes_of
from explorer.core import Costs, RankShare
from explorer.errors import InputError
from explorer.figures.units import Unit, bytes_unit

if TYPE_CHECKING:
    import pandas as pd

_DEFAULT = "gpipe,1f1b,interleaved_1f1b,zb_h1"
_MOST_DRAWN = 8
_SECONDS = Unit("", 1.0)  # of what a user names no unit


def add(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser("compare", help="put schedules or traces side by side", description=__doc__)
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="traces, in place of schedules; the first is predicted"
    )
    parser.add_argument("--schedules", metavar="A,B", help=f"names, as in `explorer schedules` ({_DEFAULT})")
    parser.add_argument("--ranks", type=whole, metavar="P", help="pipeline ranks (4)")
    parser.add_argument("--micro-batches", type=whole, metavar="M", help="micro-batches in a step (8)")
    parser.add_argument("--chunks", type=whole, metavar="N", help="stages a rank, for those that have several")
    parser.add_argument("--forward", type=number, default=1.0, metavar="S", help="seconds of a rank's forward (1)")
    parser.add_argument("--backward", type=number, metavar="S", help="seconds of a rank's backward (twice forward)")
    add_link(parser)
    add_nodes(parser)
    add_bytes(parser, of="rank")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--html", metavar="FILE", help="also draw them one above the other, as one offline page")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and write the page if one is wanted."""
    if arguments.html is not None:
        from explorer.figures.export import check_path

        check_path(arguments.html)
    if arguments.files:
        _check_alone(arguments)
        return compare_files(arguments.files, as_json=arguments.json, html=arguments.html)
    return _compare_schedules(arguments)


def _check_alone(arguments: argparse.Namespace) -> None:
    given = [name for name in ("schedules", "ranks", "micro_batches", "chunks") if getattr(arguments, name) is not None]
    if given:
        flag = f"--{given[0].replace('_', '-')}"
        raise InputError(f"files hold whole traces, so nothing else chooses one; got {flag} too; leave it out")


def _compare_schedules(arguments: argparse.Namespace) -> int:
    from explorer.planner import comparison

    n_ranks = 4 if arguments.ranks is None else arguments.ranks
    n_micro_batches = 8 if arguments.micro_batches is None else arguments.micro_batches
    check_size(n_ranks, n_micro_batches, arguments.chunks)
    costs = _costs(arguments, n_ranks)
    found = comparison(
        _schedules(arguments.schedules),
        n_ranks=n_ranks,
        n_micro_batches=n_micro_batches,
        n_chunks=arguments.chunks,
        costs=costs,
        memory_limit=arguments.memory_limit,
    )
    if found["makespan"].isna().all():
        raise InputError(str(found["reason"].iloc[0]))
    values = to_json({"n_ranks": n_ranks, "n_micro_batches": n_micro_batches, "schedules": _plain(found)})
    if arguments.html is not None:
        _draw(found, costs, arguments)
    print(values if arguments.json else _report(found, n_ranks, n_micro_batches))
    return 0


def _schedules(given: str | None) -> list[str]:
    """The names that were given, each once.

    Raises:
        InputError: if one is there twice.
    """
    names = [name.strip() for name in (_DEFAULT if given is None else given).split(",")]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--schedules names each schedule once; got {twice} again; leave it out")
    return names


def _costs(arguments: argparse.Namespace, n_ranks: int) -> RankShare:
    return Costs.per_rank_share(
        forward=arguments.forward,
        backward=arguments.backward,
        **bytes_of(arguments),
        **links_of(arguments, n_ranks),
    )


def _plain(found: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as JSON can say them: what is not a number is null."""
    rows = found.drop(columns=["n_ranks", "n_micro_batches"]).to_dict("records")
    return [
        {str(name): None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in rows
    ]


def _draw(found: pd.DataFrame, costs: RankShare, arguments: argparse.Namespace) -> None:
    from explorer.figures import compare, write_html
    from explorer.planner import Point, simulated

    drawn = found[found["legal"]].sort_values("makespan", ascending=False, kind="stable").tail(_MOST_DRAWN)
    if len(drawn) < 2:
        raise InputError(f"a drawn comparison needs two schedules that are legal here; got {len(drawn)}; add others")
    columns = [drawn[name].tolist() for name in ("schedule", "n_ranks", "n_micro_batches", "n_chunks")]
    traces = [simulated(Point(*row), costs, memory_limit=arguments.memory_limit) for row in zip(*columns, strict=True)]
    write_html(compare(*traces), arguments.html, title="Schedules compared – Pipeline Explorer")


def _report(found: pd.DataFrame, n_ranks: int, n_micro_batches: int) -> str:
    """A table of what exists, a line for what does not, and what the measures mean."""
    there = found[found["makespan"].notna()]
    columns: dict[str, list[str]] = {"schedule": there["schedule"].tolist()}
    columns["stages a rank"] = [str(n) for n in there["n_chunks"]]
    columns["makespan"] = [_SECONDS.show(seconds) for seconds in there["makespan"]]
    columns["over best"] = ["" if math.isnan(share) else f"{share:.1%}" for share in there["over_best"]]
    columns["idle"] = [f"{share:.1%}" for share in there["bubble_ratio"]]
    columns["of busy"] = [f"{share:.1%}" for share in there["bubble_overhead"]]
    columns["in flight"] = [str(n) for n in there["peak_in_flight"]]
    for name, title in (("peak_bytes", "peak memory"), ("bytes_sent", "sent")):
        if there[name].any():
            unit = bytes_unit(float(there[name].max()))
            columns[title] = [unit.show(float(size)) for size in there[name]]
    columns["messages"] = [str(n) for n in there["messages"]]
    columns["weights"] = [f"{copies:g}×" for copies in there["weight_copies"]]
    columns["splits B"] = ["yes" if split else "no" for split in there["splits_backward"]]
    head = f"{n_ranks} ranks, {n_micro_batches} micro-batches, the same work for every rank\n\n"
    told = "\nidle: of ranks × makespan; of busy: the same over busy time; in flight: micro-batches × stages, at most\n"
    reasons = [f"\n{row.schedule}: {row.reason}\n" for row in found[~found["legal"]].itertuples()]
    return head + table(columns) + told + "".join(reasons)
