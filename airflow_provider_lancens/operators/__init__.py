"""Operators on Lance namespaces and tables, and `lance_spark` for PySpark in TaskFlow tasks.

Import names from this package; its modules are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.operators.alter_table import LanceAlterTableOperator
    from airflow_provider_lancens.operators.changes import LanceFindChangesOperator
    from airflow_provider_lancens.operators.computed_column import LanceComputeColumnOperator
    from airflow_provider_lancens.operators.delete_rows import LanceDeleteOperator
    from airflow_provider_lancens.operators.ingest import (
        LanceAppendOperator,
        LanceOverwriteOperator,
        LanceUpsertOperator,
    )
    from airflow_provider_lancens.operators.maintenance import (
        LanceCleanUpVersionsOperator,
        LanceCompactTableOperator,
        LanceCreateIndexOperator,
        LanceMaintainOperator,
        LanceRemoveOrphansOperator,
    )
    from airflow_provider_lancens.operators.namespaces import (
        LanceCreateNamespaceOperator,
        LanceDropNamespaceOperator,
    )
    from airflow_provider_lancens.operators.publish import LanceDiscardOperator, LancePublishOperator
    from airflow_provider_lancens.operators.release_sets import (
        LanceFindReleaseOperator,
        LanceReleaseOperator,
    )
    from airflow_provider_lancens.operators.restore_table import LanceRestoreOperator
    from airflow_provider_lancens.operators.stream import LanceStreamOperator
    from airflow_provider_lancens.operators.tables import (
        LanceDeclareTableOperator,
        LanceDeregisterTableOperator,
        LanceDropTableOperator,
        LanceRegisterTableOperator,
    )
    from airflow_provider_lancens.operators.taskflow import lance_spark
    from airflow_provider_lancens.operators.version_authority import (
        LanceAdvanceVersionOperator,
        LanceCheckTableOperator,
        LanceConvertTableOperator,
    )
    from airflow_provider_lancens.operators.versions import (
        LanceDeleteTagOperator,
        LanceFindVersionOperator,
        LanceTagOperator,
    )

__all__ = [
    "LanceAdvanceVersionOperator",
    "LanceAlterTableOperator",
    "LanceAppendOperator",
    "LanceCheckTableOperator",
    "LanceCleanUpVersionsOperator",
    "LanceCompactTableOperator",
    "LanceComputeColumnOperator",
    "LanceConvertTableOperator",
    "LanceCreateIndexOperator",
    "LanceCreateNamespaceOperator",
    "LanceDeclareTableOperator",
    "LanceDeleteOperator",
    "LanceDeleteTagOperator",
    "LanceDeregisterTableOperator",
    "LanceDiscardOperator",
    "LanceDropNamespaceOperator",
    "LanceDropTableOperator",
    "LanceFindChangesOperator",
    "LanceFindReleaseOperator",
    "LanceFindVersionOperator",
    "LanceMaintainOperator",
    "LanceOverwriteOperator",
    "LancePublishOperator",
    "LanceRegisterTableOperator",
    "LanceReleaseOperator",
    "LanceRemoveOrphansOperator",
    "LanceRestoreOperator",
    "LanceStreamOperator",
    "LanceTagOperator",
    "LanceUpsertOperator",
    "lance_spark",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "LanceAdvanceVersionOperator": "version_authority",
        "LanceAlterTableOperator": "alter_table",
        "LanceAppendOperator": "ingest",
        "LanceCheckTableOperator": "version_authority",
        "LanceCleanUpVersionsOperator": "maintenance",
        "LanceCompactTableOperator": "maintenance",
        "LanceComputeColumnOperator": "computed_column",
        "LanceConvertTableOperator": "version_authority",
        "LanceCreateIndexOperator": "maintenance",
        "LanceCreateNamespaceOperator": "namespaces",
        "LanceDeclareTableOperator": "tables",
        "LanceDeleteOperator": "delete_rows",
        "LanceDeleteTagOperator": "versions",
        "LanceDeregisterTableOperator": "tables",
        "LanceDiscardOperator": "publish",
        "LanceDropNamespaceOperator": "namespaces",
        "LanceDropTableOperator": "tables",
        "LanceFindChangesOperator": "changes",
        "LanceFindReleaseOperator": "release_sets",
        "LanceFindVersionOperator": "versions",
        "LanceMaintainOperator": "maintenance",
        "LanceOverwriteOperator": "ingest",
        "LancePublishOperator": "publish",
        "LanceRegisterTableOperator": "tables",
        "LanceReleaseOperator": "release_sets",
        "LanceRemoveOrphansOperator": "maintenance",
        "LanceRestoreOperator": "restore_table",
        "LanceStreamOperator": "stream",
        "LanceTagOperator": "versions",
        "LanceUpsertOperator": "ingest",
        "lance_spark": "taskflow",
    },
)
