"""Findings of checks, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from airflow_provider_lancens.namespace.lance_errors import panics_as_errors
from airflow_provider_lancens.redaction import redact

Level = Literal["ok", "warning", "problem"]
_MARKS: dict[Level, str] = {"ok": "ok     ", "warning": "WARNING", "problem": "PROBLEM"}
_INDENT = " " * len(_MARKS["ok"])


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked."""

    level: Level
    subject: str
    """What was checked, such as ``storage``."""
    text: str
    advice: str = ""
    """What to do; empty if nothing needs to be done."""

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        advice = f"\n{_INDENT}  {self.advice}" if self.advice else ""
        return f"{_MARKS[self.level]} {self.subject}: {self.text}{advice}"


Check = Callable[[], Iterable[Finding]]


def run(subject: str, check: Check) -> Iterator[Finding]:
    """Yield the findings of a check; an error of the check is its last finding.

    Args:
        subject: what is checked.
        check: yields findings.
    """
    try:
        with panics_as_errors():
            yield from check()
    except Exception as error:  # noqa: BLE001 - whatever prevents a check is what a user wants to know
        yield Finding("problem", subject, redact(str(error)) or type(error).__name__)


def worst(findings: Sequence[Finding]) -> Level:
    """Return the highest level of some findings."""
    levels = {finding.level for finding in findings}
    return "problem" if "problem" in levels else "warning" if "warning" in levels else "ok"
