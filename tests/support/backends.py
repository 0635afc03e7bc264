"""The real backends of the conformance tests, and what each of them cannot do."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance_namespace
import pytest
from lance_namespace import LanceNamespace

PACKAGE = "airflow_provider_lancens.namespace"


RENAME = "rename a table"


WIDE_NAMES = "store names with characters other than a to z, digits and '_', or longer than 128 characters"


COMPARE_AND_SET = "check the condition of an alter"


_HIVE_CANNOT = {WIDE_NAMES: "the server refuses such characters, and retries longer names for 20 s"}


CANNOT: Mapping[str, Mapping[str, str]] = {
    "Hive2Namespace": _HIVE_CANNOT,
    "Hive3Namespace": _HIVE_CANNOT,
    "GlueNamespace": {RENAME: "Glue has neither such a call nor transactions"},
    "hms3": {COMPARE_AND_SET: "3.1.3 precedes HIVE-26882, and silently ignores it"},
}
"""What a kind of namespace or a server can't do, and why: a case then shows how it is refused instead."""


@dataclass(frozen=True)
class Backend:
    """A namespace on a real server, and databases that no other test uses."""

    name: str
    kind: str
    properties: Mapping[str, str]
    parent: tuple[str, ...] = ()
    """The levels above a database: none, or a catalog."""

    @property
    def cannot(self) -> Mapping[str, str]:
        """What its server can't do, and why."""
        return cannot(self.name)

    def connect(self, **more: str) -> LanceNamespace:
        """A new namespace object over the same server."""
        return lance_namespace.connect(f"{PACKAGE}.{self.kind}", {**self.properties, **more})

    def database(self) -> list[str]:
        """The id of a database that doesn't exist yet."""
        return [*self.parent, f"db_{uuid.uuid4().hex[:10]}"]


BACKENDS = {
    "hive2-on-2.3.10": ("metastore", "Hive2Namespace", ()),
    "hive2-on-3.1.3": ("hms3", "Hive2Namespace", ()),
    "hive2-on-4.0.1": ("hms4", "Hive2Namespace", ()),
    "hive3-on-3.1.3": ("hms3", "Hive3Namespace", ("hive",)),
    "hive3-on-4.0.1": ("hms4", "Hive3Namespace", ("hive",)),
    "hive3-on-4.0.1-in-a-catalog": ("hms4", "Hive3Namespace", ("lakehouse",)),
    "glue-double": ("glue", "GlueNamespace", ()),
}
"""Name of the backend: the fixture of its server, the class, the levels above a database."""


_HIVE3 = "hive3-on-4.0.1-in-a-catalog"
"""Needs jars from Maven, as do all servers but 2.3.10."""


def cannot(name: str) -> Mapping[str, str]:
    """What a backend can't do, and why."""
    server, kind, _ = BACKENDS[name]
    return {**CANNOT.get(kind, {}), **CANNOT.get(server, {})}


def params(names: Iterable[str]) -> list[Any]:
    """Backends as pytest parameters: each class on one server in runs of each change, all of them in CI."""
    marks = dict.fromkeys(BACKENDS, pytest.mark.thorough) | {_HIVE3: pytest.mark.slow}
    everyday = {"metastore", "glue"}
    return [
        name if BACKENDS[name][0] in everyday else pytest.param(name, marks=marks[name]) for name in names
    ]


@pytest.fixture(params=params(BACKENDS))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    fixture, kind, parent = BACKENDS[request.param]
    server = request.getfixturevalue(fixture)
    properties = {**_reached(server), "root": str(tmp_path / "root")}
    found = Backend(request.param, kind, properties, parent)
    if parent:
        with found.connect() as connected:  # type: ignore[attr-defined]
            connected.create_namespace({"id": list(parent), "mode": "exist_ok"})
    return found


@pytest.fixture
def namespace(backend: Backend) -> Iterator[LanceNamespace]:
    with backend.connect() as connected:  # type: ignore[attr-defined]
        yield connected


@pytest.fixture
def db(backend: Backend, namespace: LanceNamespace) -> Iterator[list[str]]:
    """The id of an existing, empty database, which is removed after the test."""
    created = backend.database()
    namespace.create_namespace({"id": created})
    yield created
    drop = {"id": created, "mode": "skip", "behavior": "cascade", "context": {"cascade.foreign-tables": "*"}}
    namespace.drop_namespace(drop)


def _reached(server: Any) -> dict[str, str]:
    return server.properties if hasattr(server, "properties") else {"uri": server.uri}


AUTHORITIES = [
    pytest.param(one.values[0] if hasattr(one, "values") else one, by, marks=getattr(one, "marks", ()))
    for one in params(BACKENDS)
    for by in ("storage", "impl")
    if by == "storage" or COMPARE_AND_SET not in cannot(str(one.values[0] if hasattr(one, "values") else one))
]
"""Each backend with each version authority that it supports."""
