"""Databases of a real metastore."""

from airflow_provider_lancens.namespace import Hive2Namespace


def drop_all(namespace: Hive2Namespace, database: str) -> None:
    everything = {"behavior": "cascade", "context": {"cascade.foreign-tables": "*"}}
    namespace.drop_namespace({"id": [database], "mode": "skip", **everything})
