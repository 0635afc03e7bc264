"""The writes that an entry remembers, as they stand in its parameter."""

import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.marks import WRITES
from airflow_provider_lancens.namespace.metastore import Table
from airflow_provider_lancens.namespace.writes import KEPT, Write, digest, noted, writes_of


def entry(**parameters: str) -> Table:
    return Table(TableId.parse("db$t"), "/t", parameters)


def after(*writes: Write) -> Table:
    made = entry()
    for write in writes:
        made = entry(**{**made.parameters, **noted(made, write)})
    return made


def test_the_newest_by_version_are_remembered() -> None:
    writes = [Write(digest(str(version)), version) for version in range(2, KEPT + 4)]

    assert writes_of(after(*writes)) == tuple(reversed(writes[-KEPT:]))
    assert writes_of(after(*reversed(writes))) == tuple(reversed(writes[-KEPT:]))


def test_a_key_that_is_written_again_is_its_newest_version() -> None:
    first, again = Write(digest("k"), 2, digest("a")), Write(digest("k"), 5, digest("b"))

    assert writes_of(after(first, again)) == (again,)


def test_the_first_version_begins_anew() -> None:
    of_a_data_set_that_is_gone = Write(digest("old"), 50)

    assert writes_of(after(of_a_data_set_that_is_gone, Write(digest("new"), 1))) == (Write(digest("new"), 1),)


def test_an_old_write_beside_newer_ones_changes_nothing() -> None:
    full = after(*(Write(digest(str(version)), version) for version in range(10, 10 + KEPT)))

    assert noted(full, Write(digest("old"), 3)) == {}


def test_a_write_travels_as_text() -> None:
    write = Write(digest("k"), 7, digest("f"), 1, 2, 3)

    assert Write.from_text(write.as_text()) == write


@pytest.mark.parametrize("text", ["junk", "{}x", "[[1]]", "7"])
def test_a_parameter_that_was_overwritten_is_said(text: str) -> None:
    with pytest.raises(InvalidTableStateError, match=f"'{WRITES}' was overwritten"):
        writes_of(entry(**{WRITES: text}))
