"""Converts the inputs and outputs of a task to OpenLineage's datasets and facets.

Imported only when Airflow's OpenLineage provider asks an operator for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import attrs
from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset
from openlineage.client.facet_v2 import DatasetFacet, JobFacet, OutputDatasetFacet, RunFacet
from openlineage.client.facet_v2 import column_lineage_dataset as column_lineage
from openlineage.client.facet_v2 import dataset_version_dataset as dataset_version
from openlineage.client.facet_v2 import lifecycle_state_change_dataset as lifecycle
from openlineage.client.facet_v2 import output_statistics_output_dataset as output_statistics
from openlineage.client.facet_v2 import schema_dataset as schema

from airflow_provider_lancens.assets.lineage import DatasetName, name_of_files
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.lineage.task_lineage import (
    DerivedColumn,
    FileRead,
    LineageColumn,
    TableRead,
    TableWrite,
    TaskLineage,
)

_COMMIT = "lance_commit"
_CHANGES = "lance_changes"


@attrs.define
class LanceCommitDatasetFacet(DatasetFacet):
    """How a task made a version of a Lance table."""

    committed: bool
    """Whether this run made the version; false if an earlier run had, or there was nothing to commit."""
    published: bool
    """Whether the newest version has the rows; false if the version is staged."""
    previousVersion: str | None = attrs.field(default=None)  # noqa: N815
    """The previous version; none if this run created the data."""
    sourceVersion: str | None = attrs.field(default=None)  # noqa: N815
    """The restored or published version of the same table, whose rows the new version has."""
    columns: list[str] | None = attrs.field(default=None)
    """The columns that were changed, if not all."""
    deletedRows: int | None = attrs.field(default=None)  # noqa: N815
    """The number of rows that a condition deleted."""


@attrs.define
class LanceChangesDatasetFacet(DatasetFacet):
    """Facet of a task that read the rows that changed up to a version, rather than the version's rows."""

    afterVersion: str | None = attrs.field(default=None)  # noqa: N815
    """The version before the first change; none if all rows are changes."""


@dataclass(frozen=True, slots=True)
class OperatorFacets:
    """What an operator reports to OpenLineage, with the attributes of the provider's ``OperatorLineage``.

    The provider copies them to its own class, whichever version of it is installed.
    """

    inputs: list[Dataset] = field(default_factory=list)
    outputs: list[Dataset] = field(default_factory=list)
    run_facets: dict[str, RunFacet] = field(default_factory=dict)
    job_facets: dict[str, JobFacet] = field(default_factory=dict)


def operator_facets(
    lineage: TaskLineage | None, inlets: Sequence[Any] = (), outlets: Sequence[Any] = ()
) -> OperatorFacets:
    """Return the datasets of a task.

    Args:
        lineage: what it read and wrote.
        inlets: the task's inlets. Inlets that name other datasets are returned too, since the provider
            looks at inlets only for tasks without any.
        outlets: the task's outlets, likewise.

    Returns:
        No datasets if nothing is known; the provider then reports the datasets of the inlets and outlets.
    """
    if lineage is None:
        return OperatorFacets()
    inputs, outputs = _inputs(lineage), _outputs(lineage)
    if not inputs and not outputs:
        return OperatorFacets()
    return OperatorFacets(
        [*inputs, *_others(inlets, lineage, inputs)], [*outputs, *_others(outlets, lineage, outputs)]
    )


def _inputs(lineage: TaskLineage) -> list[InputDataset]:
    tables = [
        _input_table(lineage, read)
        for read in lineage.reads
        if isinstance(read, TableRead) and read.table in lineage.names
    ]
    files = (name_of_files(read.path) for read in lineage.reads if isinstance(read, FileRead))
    return [*tables, *(InputDataset(*name) for name in dict.fromkeys(files) if name is not None)]


def _input_table(lineage: TaskLineage, read: TableRead) -> InputDataset:
    facets = _version_facets(lineage, read.table, read.version)
    if read.reads_changes:
        facets[_CHANGES] = LanceChangesDatasetFacet(_text(read.after_version))
    return InputDataset(*lineage.names[read.table], facets=facets)


def _outputs(lineage: TaskLineage) -> list[OutputDataset]:
    write = lineage.write
    if write.table not in lineage.names:
        return []
    facets = _version_facets(lineage, write.table, write.version)
    facets[_COMMIT] = _commit_facet(write)
    if write.lifecycle is not None:
        change = lifecycle.LifecycleStateChange(write.lifecycle)
        facets["lifecycleStateChange"] = lifecycle.LifecycleStateChangeDatasetFacet(change)
    if write.derived and (sources := _sources(lineage)):
        fields = {name: _derived(column, sources) for name, column in write.derived.items()}
        facets["columnLineage"] = column_lineage.ColumnLineageDatasetFacet(fields=fields)
    return [OutputDataset(*lineage.names[write.table], facets=facets, outputFacets=_statistics(write))]


def _version_facets(lineage: TaskLineage, table: TableId, version: int | None) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {}
    if version:
        facets["version"] = dataset_version.DatasetVersionDatasetFacet(datasetVersion=str(version))
        if (columns := lineage.columns.get((table, version))) is not None:
            facets["schema"] = schema.SchemaDatasetFacet(fields=_fields(columns))
    return facets


def _fields(columns: Sequence[LineageColumn]) -> list[schema.SchemaDatasetFacetFields]:
    return [
        schema.SchemaDatasetFacetFields(name=column.name, type=column.type, fields=_fields(column.fields))
        for column in columns
    ]


def _commit_facet(write: TableWrite) -> LanceCommitDatasetFacet:
    return LanceCommitDatasetFacet(
        committed=write.committed,
        published=write.published,
        previousVersion=_text(write.previous_version),
        sourceVersion=_text(write.source_version),
        columns=None if write.columns is None else list(write.columns),
        deletedRows=write.deleted_rows,
    )


def _statistics(write: TableWrite) -> dict[str, OutputDatasetFacet]:
    if write.counts is None:
        return {}
    rows, files, size = write.counts
    statistics = output_statistics.OutputStatisticsOutputDatasetFacet(
        rowCount=rows, size=size, fileCount=files
    )
    return {"outputStatistics": statistics}


def _sources(lineage: TaskLineage) -> list[DatasetName]:
    return [DatasetName(dataset.namespace, dataset.name) for dataset in _inputs(lineage)]


def _derived(column: DerivedColumn, sources: Sequence[DatasetName]) -> column_lineage.Fields:
    subtype = "IDENTITY" if column.is_copy else "TRANSFORMATION"
    transformation = column_lineage.Transformation(type="DIRECT", subtype=subtype)
    fields = [
        column_lineage.InputField(*source, field=name, transformations=[transformation])
        for source in sources
        for name in column.columns
    ]
    return column_lineage.Fields(inputFields=fields)


def _others(assets: Sequence[Any], lineage: TaskLineage, known: Sequence[Dataset]) -> list[Dataset]:
    from airflow.sdk import Asset

    others = [asset for asset in assets if isinstance(asset, Asset) and asset.uri not in lineage.assets]
    if not others:
        return []
    from airflow.providers.openlineage.utils.utils import translate_airflow_asset

    names = {(dataset.namespace, dataset.name) for dataset in known}
    converted = [translate_airflow_asset(asset, None) for asset in others]
    return [
        dataset
        for dataset in converted
        if dataset is not None and (dataset.namespace, dataset.name) not in names
    ]


def _text(version: int | None) -> str | None:
    return None if version is None else str(version)
