"""What a look before a run finds, as rows: what must be, what came, what would do."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from explorer.errors import ExplorerError, InputError

if TYPE_CHECKING:
    import pandas as pd

ERROR, WARNING, NOTE = "error", "warning", "note"
_MARKS = {ERROR: "✗", WARNING: "!", NOTE: "·"}
_WIDTH = 110  # letters a line

Found = TypeVar("Found")


class Finding(NamedTuple):
    """One thing found.

    Attributes:
        severity: "error", a run is refused; "warning", it runs, and may not be what was meant; or "note".
        rule: what holds.
        came: what there is.
        advice: what would do, or what follows.
        argument: which argument would mend it, or "".
        legal: the nearest legal values for it, best first.
    """

    severity: str
    rule: str
    came: str
    advice: str
    argument: str = ""
    legal: tuple[int | str, ...] = ()

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        return "; ".join(part for part in (self.rule, self.came, self.advice) if part)

    @classmethod
    def of(cls, error: ExplorerError) -> Finding:
        """What an error says, taken apart at its semicolons."""
        rule, _, rest = str(error).partition("; ")
        came, _, advice = rest.rpartition("; ")
        argument, legal = (error.argument, error.legal) if isinstance(error, InputError) else ("", ())
        return cls(ERROR, rule, came or advice, advice if came else "", argument, legal)


@dataclass(frozen=True)
class Report:
    """What a look before a run has found.

    Attributes:
        findings: errors first, then warnings, then notes.
    """

    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing would be refused."""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What would be refused."""
        return self._of(ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What runs, and may not be what was meant."""
        return self._of(WARNING)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What is good to know."""
        return self._of(NOTE)

    def to_frame(self) -> pd.DataFrame:
        """A row for each finding: severity, rule, came, advice, argument, legal."""
        import pandas as pd

        return pd.DataFrame(list(self.findings), columns=list(Finding._fields))

    def _of(self, severity: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def __repr__(self) -> str:
        verdict = "ready to run" if self.ok else "would be refused"
        lines = [f"Report: {verdict}, {len(self.errors)} errors, {len(self.warnings)} warnings"]
        for finding in self.findings:
            lines += textwrap.wrap(
                finding.sentence, _WIDTH, initial_indent=f"  {_MARKS[finding.severity]} ", subsequent_indent="    "
            )
        return "\n".join(lines)


class Collector:
    """Gathers findings, also those that come as errors."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def of(self, check: Callable[..., Found], *values: Any, **named: Any) -> Found | None:
        """What `check` gives, or None and a finding if it refuses."""
        try:
            return check(*values, **named)
        except ExplorerError as error:
            self.findings.append(Finding.of(error))
            return None

    def report(self) -> Report:
        """All there is, the gravest first, each once."""
        order = list(_MARKS)
        unique = dict.fromkeys(self.findings)
        return Report(tuple(sorted(unique, key=lambda finding: order.index(finding.severity))))
