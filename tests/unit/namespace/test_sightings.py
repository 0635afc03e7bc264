"""Looking at many tables at once: what fails for one of them fails for no other."""

from collections.abc import Collection, Sequence
from typing import Any

from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.metastore import Table
from airflow_provider_lancens.namespace.operations.sightings import Sighting, SightingOperations

BROKEN = "broken"


class Server:
    """A metastore that fails a whole batch for one entry, and is away for one database."""

    def __init__(self, *entries: Table) -> None:
        self.entries = {entry.id: entry for entry in entries}
        self.calls = 0

    def get_tables(self, namespace: NamespaceId, names: Collection[str]) -> Sequence[Table]:
        self.calls += 1
        if namespace.name == "away":
            raise ServiceUnavailableError("nobody answered")
        if namespace.name == "missing":
            raise NamespaceNotFoundError("no such database")
        if BROKEN in names:
            raise InternalError("an entry can't be read")
        wanted = [namespace.table(name) for name in names]
        return [self.entries[table] for table in wanted if table in self.entries]


def entry(name: str, **parameters: str) -> Table:
    return Table(TableId.parse(name), "file:/lake/t", {marks.TABLE_TYPE: "lance", **parameters})


def look(server: Server, *names: str) -> dict[str, Any]:
    found = SightingOperations(server).look([TableId.parse(name) for name in names])  # type: ignore[arg-type]
    return {str(table): one for table, one in found.items()}


def test_a_table_is_seen_with_the_version_of_whoever_decides_it() -> None:
    server = Server(entry("a$stored"), entry("a$managed", managed_by="impl", version="7"))
    assert look(server, "a$stored", "a$managed", "a$gone") == {
        "a$stored": Sighting("/lake/t", None),
        "a$managed": Sighting("/lake/t", 7),
        "a$gone": None,
    }
    assert server.calls == 1


def test_tables_of_a_database_that_is_gone_are_gone() -> None:
    assert look(Server(), "missing$t", "missing$u") == {"missing$t": None, "missing$u": None}


def test_an_entry_that_the_server_stumbles_over_is_found_and_the_others_are_seen() -> None:
    names = [f"a$t{number}" for number in range(20)]
    found = look(Server(*map(entry, names)), *names, f"a${BROKEN}")
    assert isinstance(found.pop(f"a${BROKEN}"), InternalError)
    assert all(isinstance(one, Sighting) for one in found.values())


def test_an_entry_that_is_no_lance_table_fails_alone() -> None:
    hive = Table(TableId.parse("a$hive"), "file:/lake/hive")
    found = look(Server(hive, entry("a$t")), "a$hive", "a$t")
    assert isinstance(found["a$hive"], InvalidInputError)
    assert found["a$t"] == Sighting("/lake/t", None)


def test_a_server_that_is_away_is_asked_once() -> None:
    server = Server(entry("a$t"), entry("z$t"))
    found = look(server, "a$t", "away$t", "away$u", "z$t")
    assert found["a$t"] == Sighting("/lake/t", None)
    assert all(isinstance(found[name], ServiceUnavailableError) for name in ("away$t", "away$u", "z$t"))
    assert server.calls == 2
