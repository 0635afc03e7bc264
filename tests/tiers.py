"""Selection of tests: the everyday ones without arguments, otherwise those that paths and `-m` select.

There are four tiers: everyday tests, `slow` ones, which every change must also pass (`./scripts/test`),
`thorough` ones, which CI runs after them (`./scripts/test --thorough`), and `long` ones (`make long`). A
test with several of these marks is of the last tier. A path or a node id selects tests of each tier, so
that a `long` one can be named.
"""

import re
from pathlib import Path

import pytest

EVERYDAY = "not slow and not thorough and not long"


def select_tier(config: pytest.Config) -> None:
    """Select the everyday tests if the command line has neither a path nor `-m`.

    The controller of xdist decides for its worker processes, whose arguments always contain paths.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS and not config.option.markexpr:
        config.option.markexpr = EVERYDAY


def left_out(config: pytest.Config) -> str | None:
    """A line that names the tiers that aren't run, and how to run them."""
    if config.option.markexpr != EVERYDAY:
        return None
    return f"tests: only the everyday ones ({EVERYDAY}); a path, a node id or -m selects others"


_MARKS_OF_FILE = re.compile(r"^pytestmark = (?:\[\n.*?^\]|[^\n]*)", re.MULTILINE | re.DOTALL)


def leaves_out(expression: str, file: Path) -> bool:
    """Whether an expression of `-m` excludes all tests of a file, by a mark of the file.

    Such a file isn't imported: each process of a run collects all tests, a fifth of them in such files.
    """
    terms = expression.split(" and ")
    if any(" or " in term or "(" in term for term in terms):
        return False
    excluded = [term.removeprefix("not ") for term in terms if term.startswith("not ")]
    marks = _MARKS_OF_FILE.search(file.read_text(encoding="utf-8"))
    return marks is not None and any(re.search(rf"\bmark\.{mark}\b", marks[0]) for mark in excluded)
