"""Random events of a table that is written under keys, in any order, compared with a model."""

from pathlib import Path

import pytest

from tests.unit.spark.keys.key_state_machine import KeyedTableMachine
from tests.unit.spark.keys.random_events import check_in_any_order, short_segments

__all__ = ["short_segments"]  # a fixture
pytestmark = pytest.mark.usefixtures("short_segments")


def test_each_key_writes_its_row_once_after_random_events(tmp_path: Path) -> None:
    check_in_any_order(KeyedTableMachine, tmp_path, examples=5, steps=15)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_key_writes_its_row_once_after_many_random_events(tmp_path: Path) -> None:
    check_in_any_order(KeyedTableMachine, tmp_path, examples=200, steps=50)
