"""The steps of `maintain_table` at which its process may be killed, in order."""

from collections.abc import Mapping

from airflow_provider_lancens.spark.maintenance import clean_up, index, maintain
from airflow_provider_lancens.spark.maintenance.table_state import MaintainedTable
from tests.integration.managed.commit_points import Point

MAINTENANCE_STEPS: Mapping[str, Point] = {
    "before-it-compacts": Point(maintain, "compact_table", after=False, committed=False),
    "before-the-compaction-is-committed": Point(MaintainedTable, "committing", after=False, committed=False),
    "when-the-compaction-is-committed": Point(maintain, "compact_table", after=True, committed=True),
    "before-the-index-is-built": Point(index, "_build", after=False, committed=True),
    "when-the-index-is-committed": Point(index, "_build", after=True, committed=True),
    "before-versions-are-removed": Point(clean_up, "remove_versions", after=False, committed=True),
    "when-versions-are-removed": Point(clean_up, "remove_versions", after=True, committed=True),
}
"""`committed` says whether the fragments are compacted then."""
