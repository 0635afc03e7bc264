"""The tables of releases, after another table was declared under the name of one, or of the set."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
from airflow_provider_lancens.spark.release_sets import Member, find_release_set
from tests.unit.spark.every_verb import NAME, RELEASES, Lake, rows

OTHER = "db$other"
AGAIN = r"was dropped and declared again.*after its version {} was returned"


@pytest.fixture(params=["storage", "impl"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(str(tmp_path), request.param)


@pytest.fixture
def lake(folder: Lake) -> LanceCatalog:
    """Two tables of three versions, and a release set without a release."""
    opened = LanceCatalog(lambda: folder.namespace)
    opened.declare_table(RELEASES)
    for table in (NAME, OTHER):
        declare(opened, table, 1, 2, 3)
    return opened


def declare(lake: LanceCatalog, table: str, *numbers: int) -> None:
    opened = lake.declare_table(table)
    for number in numbers:
        opened.append(rows(number))


def declare_again(lake: LanceCatalog, table: str, *numbers: int) -> None:
    lake.drop_table(table)
    declare(lake, table, *numbers)


def test_a_table_that_was_declared_again_is_not_read_at_the_version_of_a_release(lake: LanceCatalog) -> None:
    lake.release_set(RELEASES).release({NAME: 2, OTHER: 3})
    assert [one.count_rows() for one in lake.release_set(RELEASES).tables().values()] == [3, 2]
    declare_again(lake, NAME, 4, 5, 6, 7)

    released = lake.release_set(RELEASES).tables()
    assert released[OTHER].count_rows() == 3
    with pytest.raises(InvalidTableStateError, match=AGAIN.format(2)):
        released[NAME].count_rows()

    lake.release_set(RELEASES).release({NAME: 4, OTHER: 3})
    assert lake.release_set(RELEASES).tables()[NAME].count_rows() == 4


def test_a_smaller_version_of_another_table_of_the_name_is_not_an_older_one(lake: LanceCatalog) -> None:
    daily = lake.release_set(RELEASES)
    daily.release({NAME: 3, OTHER: 3})
    with pytest.raises(InvalidInputError, match=r"version 2 of table db\$t is older than 3.*allow_older"):
        daily.release({NAME: 2, OTHER: 3})
    declare_again(lake, NAME, 4, 5)

    assert daily.release({NAME: 2, OTHER: 3}).tables == {NAME: 2, OTHER: 3}
    with pytest.raises(InvalidInputError, match=r"version 2 of table db\$other is older than 3"):
        daily.release({NAME: 2, OTHER: 2})


@pytest.mark.parametrize("as_given", [lambda one: one, lambda one: one.as_dict()])
def test_a_result_of_a_former_table_is_not_released(
    lake: LanceCatalog, as_given: Callable[[Any], Any]
) -> None:
    results = [as_given(lake.table(name).append(rows(9))) for name in (NAME, OTHER)]
    daily = lake.release_set(RELEASES)
    assert daily.release(results).tables == {NAME: 4, OTHER: 4}
    with pytest.raises(InvalidInputError, match=re.escape("tables: db$t is listed twice")):
        daily.release([results[0], results[0]])
    declare_again(lake, NAME, 4, 5, 6, 7, 8)

    with pytest.raises(InvalidTableStateError, match=AGAIN.format(4)):
        daily.release(results)
    assert [tag.name for tag in lake.table(NAME).tags()] == [], "no version of the new table is kept for it"


def test_the_result_of_a_former_release_set_is_refused(lake: LanceCatalog) -> None:
    made = lake.release_set(RELEASES).release({NAME: 1})
    lake.release_set(RELEASES).release({NAME: 3})
    [released] = lake.release_set(made).tables().values()
    assert released.version == 1
    with pytest.raises(InvalidInputError, match=r"opened at version 1, and read-only"):
        lake.release_set(made.as_dict()).release({NAME: 3})
    declare_again(lake, RELEASES)
    lake.release_set(RELEASES).release({NAME: 3})

    with pytest.raises(InvalidTableStateError, match=AGAIN.format(1)):
        lake.release_set(made.as_dict()).tables()


def test_a_release_that_was_made_without_locations_is_read_and_followed(lake: LanceCatalog) -> None:
    former = pa.table({"table": [NAME, OTHER], "version": pa.array([1, 3], pa.int64())})
    lake.table(RELEASES).append(former)
    daily = lake.release_set(RELEASES)

    assert find_release_set(lake.namespace, RELEASES) == (1, {NAME: Member(1), OTHER: Member(3)})
    assert [one.count_rows() for one in daily.tables().values()] == [1, 3]
    with pytest.raises(InvalidInputError, match=r"version 2 of table db\$other is older than 3"):
        daily.release({NAME: 2, OTHER: 2})
    assert daily.release({NAME: 2, OTHER: 3}).version == 2

    _, members = find_release_set(lake.namespace, RELEASES)
    assert members == {name: Member(n, lake.table(name).location) for name, n in ((NAME, 2), (OTHER, 3))}
    lake.table(RELEASES).restore(1)
    assert [one.version for one in daily.tables().values()] == [1, 3]
    daily.release({NAME: 3, OTHER: 3})
    assert lake.table(RELEASES).schema.names == ["table", "version", "location"]
