"""py4j tells a task's log of failures only, unless somebody wants to hear more."""

import logging
from collections.abc import Iterator

import pytest

from airflow_provider_lancens.spark.jvm import hush


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
def test_it_is_silent_unless_somebody_chose_its_level(py4j: logging.Logger, chosen: int, then: int) -> None:
    py4j.setLevel(chosen)

    hush()

    assert py4j.level == then
