"""py4j logs only warnings in a task's log, unless its level is set."""

import logging
from collections.abc import Iterator

import pytest

from airflow_provider_lancens.spark.session import quiet_py4j


@pytest.fixture
def py4j() -> Iterator[logging.Logger]:
    log = logging.getLogger("py4j")
    before = log.level
    yield log
    log.setLevel(before)


@pytest.mark.parametrize(
    ("chosen", "then"),
    [
        (logging.NOTSET, logging.WARNING),
        (logging.DEBUG, logging.DEBUG),
        (logging.ERROR, logging.ERROR),
    ],
)
def test_the_py4j_logger_is_quiet_unless_its_level_was_set(
    py4j: logging.Logger, chosen: int, then: int
) -> None:
    py4j.setLevel(chosen)

    quiet_py4j()

    assert py4j.level == then
