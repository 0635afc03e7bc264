"""All maintenance of a table in the right order, each step only if it is due.

Compaction is first: it rewrites fragments, and some types of index lose those rows. The indices follow, so
that they cover what it wrote, and then the clean-up of versions. The decisions are based on one version;
decisions on indices are made again after a compaction. A repeated run does the remaining steps.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions, not_cleaned_up
from airflow_provider_lancens.spark.maintenance.compact import (
    compact_table,
    not_compacted,
    planned_compaction,
)
from airflow_provider_lancens.spark.maintenance.index import build_index, not_indexed
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    IndexSpec,
    MaintenancePlan,
)
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.maintenance.parallel_tasks import Spark
from airflow_provider_lancens.spark.maintenance.table_state import Coverage, Decision, TableState, table_state
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.results import (
    CompactionResult,
    ExpireResult,
    IndexResult,
    MaintenanceResult,
    OrphansResult,
    Result,
    elapsed,
    versions_of_steps,
)
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)

_FAILED = "it failed"
_Result = TypeVar("_Result")


@observed("maintain")
def maintain_table(
    spark: Spark,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    plan: MaintenancePlan | None = None,
) -> MaintenanceResult:
    """Compact a table, build and extend its indices, and remove its old versions, if that is due.

    What is due is decided by the metadata of one version. If a step fails, the others are still made: an
    index that can't be built must not keep old versions for ever. Then the first error is raised, with the
    name of its step and what the others committed; run again, it does what is left.

    Args:
        spark: the session, or a function that starts one, called only if a compaction or an index is due; it
            may be called for each of these steps, and returns the same session.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        plan: the steps, and when they pay.

    Raises:
        LanceNamespaceError: the error of the first step that failed, with the step's name; see
            `Table.compact`, `create_index`, `expire_versions` and `remove_orphans`.
    """
    return _Maintenance(spark, namespace, table, plan or MaintenancePlan()).run()


def planned_maintenance(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, plan: MaintenancePlan
) -> MaintenanceResult:
    """Return the steps that are due, and what they would do; see `maintain_table` for the arguments."""
    started = time.monotonic()
    with table_state(namespace, table) as state:
        compaction = state.decide_compaction(plan.compaction, plan.thresholds)
        indices = [(index, *state.decide_index(index, plan.thresholds)) for index in plan.indices]
        clean_up = state.decide_clean_up(plan.older_than, plan.keep_versions, plan.thresholds)
    steps: dict[str, Result] = {"compact": not_compacted(state, compaction.reason)}
    if compaction.is_due:
        planned = planned_compaction(namespace, table, options=plan.compaction)
        steps["compact"] = replace(planned, reason=compaction.reason)
    for index, coverage, decision in indices:
        found = not_indexed(state, coverage, decision.reason)
        steps[f"index.{index.name}"] = replace(found, outcome="planned") if decision.is_due else found
    steps["expire"] = not_cleaned_up(state, clean_up.reason)
    if clean_up.is_due:
        expired = clean_up_versions(
            namespace,
            table,
            older_than=plan.older_than,
            keep_versions=plan.keep_versions,
            keys_older_than=plan.keys_older_than,
            dry_run=True,
        )
        steps["expire"] = replace(expired, reason=clean_up.reason)
        if plan.orphans_older_than is not None:
            age = plan.orphans_older_than
            steps["orphans"] = remove_orphans(namespace, table, older_than=age, dry_run=True)
    return MaintenanceResult(
        table=state.table,
        location=state.target.dataset.location,
        operation="maintain",
        outcome="planned",
        version=state.version,
        previous_version=state.version,
        steps=steps,
        seconds=elapsed(started),
    )


@dataclass(frozen=True, slots=True)
class _Maintenance:
    spark: Spark
    namespace: NamespaceSpec | LanceNamespace
    table: TableId | str
    plan: MaintenancePlan
    done: list[str] = field(default_factory=list)
    """What was committed, for the message of an error."""
    failed: list[tuple[str, Exception]] = field(default_factory=list)
    """The steps that failed, with their errors."""

    def run(self) -> MaintenanceResult:
        started, plan = time.monotonic(), self.plan
        with table_state(self.namespace, self.table) as state:
            compaction = state.decide_compaction(plan.compaction, plan.thresholds)
            coverages = self._coverages(state)
            self._warn_of_indices(state)
            clean_up = state.decide_clean_up(plan.older_than, plan.keep_versions, plan.thresholds)
        # Rebuild unusable indices first: a compaction may have to read them.
        rebuilt = {
            coverage.spec.name: self._index(state, coverage, due)
            for coverage, due in coverages
            if coverage.is_unusable
        }
        compacted = self._compact(state, compaction)
        if compacted.is_done and plan.indices:
            coverages = self._try("decision on indices", self._coverages_after_compaction) or coverages
        indexed = [self._indexed(state, rebuilt, *found) for found in coverages]
        cleaned = self._clean_up(state, clean_up)
        orphans = self._remove_orphans() if clean_up.is_due else None
        self._raise_first()
        steps: dict[str, Result] = {"compact": compacted}
        steps |= {f"index.{index.index}": index for index in indexed}
        steps["expire"] = cleaned
        if orphans is not None:
            steps["orphans"] = orphans
        previous, version = versions_of_steps(steps.values())
        return MaintenanceResult(
            table=state.table,
            location=state.target.dataset.location,
            operation="maintain",
            outcome="done" if any(step.is_done for step in steps.values()) else "unchanged",
            version=version,
            previous_version=previous,
            steps=steps,
            seconds=elapsed(started),
        )

    def _warn_of_indices(self, state: TableState) -> None:
        planned = {index.name for index in self.plan.indices}  # these are built anew
        for name in state.indices_of_no_column():
            if name not in planned:
                _log.warning(
                    "table %s: the column of index %r no longer exists, so reads with a filter fail; drop it "
                    "by Table.drop_index",
                    state.table,
                    name,
                )

    def _coverages(self, state: TableState, *, compacted: bool = False) -> list[tuple[Coverage, Decision]]:
        return [
            state.decide_index(index, self.plan.thresholds, compacted=compacted)
            for index in self.plan.indices
        ]

    def _coverages_after_compaction(self) -> list[tuple[Coverage, Decision]]:
        with table_state(self.namespace, self.table) as newer:
            return self._coverages(newer, compacted=True)

    def _compact(self, state: TableState, decision: Decision) -> CompactionResult:
        if not decision.is_due:
            return not_compacted(state, decision.reason)
        options = self.plan.compaction
        result = self._try(
            "compaction", lambda: compact_table(self.spark, self.namespace, self.table, options=options)
        )
        if result is None:
            return not_compacted(state, _FAILED)
        if not result.is_done:
            return result
        self.done.append(f"compaction committed version {result.version}")
        return replace(result, reason=decision.reason)

    def _index(self, state: TableState, coverage: Coverage, decision: Decision) -> IndexResult:
        if not decision.is_due:
            return not_indexed(state, coverage, decision.reason)
        spec = coverage.spec
        result = self._try(f"index {spec.name!r}", lambda: self._build(spec, rebuild=decision.rebuild))
        if result is None:
            return not_indexed(state, coverage, _FAILED)
        if result.is_done:
            self.done.append(f"index {spec.name!r} committed version {result.version}")
        return replace(result, reason=decision.reason)

    def _indexed(
        self, state: TableState, rebuilt: Mapping[str, IndexResult], coverage: Coverage, decision: Decision
    ) -> IndexResult:
        """Build or extend an index, unless it was unusable, was built anew, and covers all rows since."""
        earlier = rebuilt.get(coverage.spec.name)
        if earlier is not None and (coverage.is_unusable or not decision.is_due):
            return earlier
        return self._index(state, coverage, decision)

    def _build(self, spec: IndexSpec, *, rebuild: bool) -> IndexResult:
        return build_index(
            spark=self.spark,
            namespace=self.namespace,
            table=self.table,
            spec=spec,
            if_exists="replace" if rebuild else "extend",
            keeps_options=True,
            segments=self.plan.segments,
        )

    def _clean_up(self, state: TableState, decision: Decision) -> ExpireResult:
        if not decision.is_due:
            return not_cleaned_up(state, decision.reason)
        result = self._try(
            "clean-up",
            lambda: clean_up_versions(
                self.namespace,
                self.table,
                older_than=self.plan.older_than,
                keep_versions=self.plan.keep_versions,
                keys_older_than=self.plan.keys_older_than,
            ),
        )
        if result is None:
            return not_cleaned_up(state, _FAILED)
        self.done.append(f"clean-up removed {result.versions} versions")
        return replace(result, reason=decision.reason)

    def _remove_orphans(self) -> OrphansResult | None:
        age = self.plan.orphans_older_than
        if age is None:
            return None
        return self._try("orphans", lambda: remove_orphans(self.namespace, self.table, older_than=age))

    def _try(self, name: str, step: Callable[[], _Result]) -> _Result | None:
        """Make a step; keep its error, so that the next ones are made, and return None."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001 the first error is raised after all steps
            _log.warning("table %s: %s failed: %s", self.table, name, error)
            self.failed.append((name, error))
            return None

    def _raise_first(self) -> None:
        """Raise the first error, if any, with its step; an error of another library unchanged."""
        if not self.failed:
            return
        name, error = self.failed[0]
        if not isinstance(error, spec_errors.LanceNamespaceError):
            raise error
        others = [f"{other} failed too" for other, _ in self.failed[1:]] + self.done
        beside = f" ({', '.join(others)})" if others else ""
        raise type(error)(f"{name} failed{beside}: {error}") from error
