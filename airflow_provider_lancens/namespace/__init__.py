"""Lance Namespace implementations over Hive Metastore and AWS Glue.

Each is a `lance_namespace.LanceNamespace` made from string properties::

    lance_namespace.connect("airflow_provider_lancens.namespace.Hive2Namespace", {"uri": "thrift://host:9083"})

The classes are loaded when they are first named: what only needs `storage` pays for nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_lancens.namespace.glue.namespace import GlueNamespace
    from airflow_provider_lancens.namespace.hive.hive2 import Hive2Namespace
    from airflow_provider_lancens.namespace.hive.hive3 import Hive3Namespace

__all__ = ["GlueNamespace", "Hive2Namespace", "Hive3Namespace"]

_HOMES = {
    "GlueNamespace": "airflow_provider_lancens.namespace.glue.namespace",
    "Hive2Namespace": "airflow_provider_lancens.namespace.hive.hive2",
    "Hive3Namespace": "airflow_provider_lancens.namespace.hive.hive3",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
