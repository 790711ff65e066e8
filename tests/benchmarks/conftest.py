"""Benchmarks print one table at the end of the session: what was measured, in rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

_rows: list[tuple[str, Mapping[str, float]]] = []


@pytest.fixture
def table() -> Callable[[str, Mapping[str, float]], None]:
    """Adds a row: its name, and figure → value."""
    return lambda name, figures: _rows.append((name, figures))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _rows:
        return
    terminalreporter.section("benchmarks")
    for name, figures in _rows:
        cells = "  ".join(f"{key} {value:,.4g}" for key, value in figures.items())
        terminalreporter.write_line(f"{name:<40} {cells}")
