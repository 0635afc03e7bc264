"""Uses a class of lance-namespace-impls through `CatalogNamespace`, and prints the outcomes as JSON.

Runs in an environment of its own: the classes pin an old thrift.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import CatalogNamespace


def outcome(step: Callable[[], Any]) -> Any:
    """What a step returns, or the code of its error."""
    try:
        return step()
    except LanceNamespaceError as error:
        return {"code": int(error.code), "message": str(error)}


def main(impl: str, properties: str, unreachable: str, root: str, *database: str) -> None:
    """Create, write, poll and drop a table in a database.

    Args:
        impl: the class.
        properties: of the catalog, as JSON.
        unreachable: those that differ where no server answers, as JSON.
        root: the folder of the tables.
        database: the levels of the database's name.
    """
    given: dict[str, str] = {**json.loads(properties), "root": root}
    catalog = CatalogNamespace(impl=impl, **given)
    place = {"location": f"{root}/{database[-1]}.db"}  # the class for Glue doesn't use the root
    db, orders, missing = [*database], TableId((*database, "orders")), TableId((*database, "nothing"))

    def write() -> int:
        location = catalog.describe_table({"id": [*orders.parts], "vend_credentials": True}).location
        return int(lance.write_dataset(pa.table({"id": [1]}), location).version)

    steps: dict[str, Callable[[], Any]] = {
        "test": lambda: catalog.server_info().summary,
        "create": lambda: catalog.create_namespace({"id": db, "properties": place}) and True,
        "create again": lambda: catalog.create_namespace({"id": db}),
        "declare": lambda: str(catalog.declare_table({"id": [*orders.parts]}).location),
        "declare again": lambda: catalog.declare_table({"id": [*orders.parts]}),
        "exists": lambda: catalog.table_exists({"id": [*orders.parts]}) and True,
        "exists not": lambda: catalog.table_exists({"id": [*missing.parts]}),
        "list": lambda: catalog.list_tables({"id": db}).tables,
        "write": write,
        "poll": lambda: catalog.read_storage_version(catalog.poll_tables([orders])[orders]).version,
        "poll missing": lambda: catalog.poll_tables([missing])[missing].location,
        "check": lambda: catalog.compare_table(orders.parts).verdict,
        "register": lambda: catalog.register_table({"id": [*missing.parts], "location": root}),
        "drop database": lambda: catalog.drop_namespace({"id": db}),
        "deregister": lambda: catalog.deregister_table({"id": [*orders.parts]}) and True,
        "drop": lambda: catalog.drop_namespace({"id": db}) and True,
        "unreachable": lambda: CatalogNamespace(
            impl=impl, **{**given, **json.loads(unreachable)}
        ).list_tables({"id": db}),
    }
    sys.stdout.write(f"{json.dumps({name: outcome(step) for name, step in steps.items()})}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
