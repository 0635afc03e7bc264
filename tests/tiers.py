"""Selection of tests: the everyday ones without arguments, otherwise those that paths and `-m` select.

There are four tiers: everyday tests, `slow` ones, which every change must also pass (`./scripts/test`),
`thorough` ones, which CI runs after them (`./scripts/test --thorough`), and `long` ones (`make long`). A
test with several of these marks is of the last tier. A path or a node id selects tests of each tier, so
that a `long` one can be named.
"""

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
