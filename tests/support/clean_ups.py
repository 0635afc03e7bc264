"""The clean-ups that revoke leases of writes presumed dead."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from tests.integration.spark.faults.table_files import age_table, clean_up

CleanUp = Callable[[NamespaceSpec, str], None]


def remove_old_versions(spec: NamespaceSpec, table: str) -> None:
    """Clean up as if all files and all writes were a month old."""
    age_table(spec, table, days=30)
    clean_up_versions(spec, table, older_than=timedelta(0))


CLEAN_UPS: Mapping[str, CleanUp] = {"orphans": clean_up, "versions": remove_old_versions}
