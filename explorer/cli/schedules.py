"""`explorer schedules`: every schedule, and the numbers it exists for."""

from __future__ import annotations

import argparse

from explorer.cli.arguments import Commands
from explorer.cli.output import to_json
from explorer.schedules import REGISTRY


def add(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser("schedules", help="list the schedules", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """List them."""
    if arguments.json:
        listed = {
            recipe.name: {
                "title": recipe.title,
                "summary": recipe.summary,
                "needs": recipe.needs,
                "n_chunks": recipe.n_chunks,
                "options": list(recipe.options),
            }
            for recipe in REGISTRY.values()
        }
        print(to_json(listed))
        return 0
    width = max(map(len, REGISTRY)) + 2
    for recipe in REGISTRY.values():
        print(f"{recipe.name:<{width}}{recipe.summary}\n{'':<{width}}needs {recipe.needs}")
    return 0
