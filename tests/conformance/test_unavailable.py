"""An unreachable metastore: every operation raises code 17."""

import pytest
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.servers.proxy import closed_port
from tests.support.backends import Backend

ON_NAMESPACES = [
    "create_namespace",
    "list_namespaces",
    "describe_namespace",
    "namespace_exists",
    "drop_namespace",
    "list_tables",
]
ON_TABLES = [
    "declare_table",
    "register_table",
    "describe_table",
    "table_exists",
    "rename_table",
    "deregister_table",
    "drop_table",
]


def elsewhere(backend: Backend) -> dict[str, str]:
    """Properties of the same kind of metastore at an address without a server."""
    uri = closed_port()
    if backend.kind == "GlueNamespace":
        return {"endpoint": uri.replace("thrift", "http"), "client.max-attempts": "1"}
    return {"uri": uri}


@pytest.mark.parametrize("operation", [*ON_NAMESPACES, *ON_TABLES, "list_all_tables"])
def test_every_operation_reports_an_unreachable_metastore(backend: Backend, operation: str) -> None:
    target = backend.database()
    request = {
        "id": [*target, "t"] if operation in ON_TABLES else target,
        "location": "/somewhere",
        "new_table_name": "u",
    }
    namespace = backend.connect(**elsewhere(backend))
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE):
        getattr(namespace, operation)({} if operation == "list_all_tables" else request)
