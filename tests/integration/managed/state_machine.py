"""Random events of a managed table, checked with a model: commits, kills, bypasses, repairs, clean-ups."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.integration.managed.commit_points import POINTS, SimulatedDeath, simulate_death
from tests.integration.managed.managed_table import ManagedTable
from tests.integration.managed.table_model import Model, Staged
from tests.support.lakes import Lake

points = st.sampled_from(sorted(POINTS))
consistent = precondition(lambda self: self.model.verdict == "consistent")
openable = precondition(lambda self: self.model.verdict != "metastore_ahead")
bypassed = precondition(lambda self: self.model.verdict in ("storage_ahead", "diverged"))


class ManagedTableMachine(RuleBasedStateMachine):
    """Two writers through namespaces, direct writers, and repairs."""

    def __init__(self, lake: Lake, namespaces: tuple[Any, Any], table: tuple[str, str]) -> None:
        super().__init__()
        ours, others = namespaces
        ours.declare_table({"id": list(table), "properties": {"managed_by": "impl"}})
        self.table = ManagedTable(ours, table, lake.storage_options)
        self.other = self.table.through(others)
        self.table.append(1)
        self.model = Model([(1,)], [(1,)])
        self.newest_row = 1

    @rule()
    def append(self) -> None:
        row = self._row()
        if self.model.verdict == "consistent":
            assert self.table.append(row) == self.model.version + 1
            self.model.commit(self.model.staged_now(row))
        else:
            with pytest.raises((OSError, ValueError)):
                self.other.append(row)

    @openable
    @rule()
    def stage(self) -> None:
        self._stage()

    @openable
    @precondition(lambda self: self.model.staged)
    @rule(data=st.data())
    def send_staged_commit(self, data: st.DataObject) -> None:
        staged = data.draw(st.sampled_from(self.model.staged))
        if staged is self.model.last:  # the same request again, after a lost reply
            assert self.table.commit(staged.request).version == staged.version
            self.model.finish()
        elif staged.version <= self.model.version:
            self._refused(staged, ErrorCode.CONCURRENT_MODIFICATION)
        elif self.model.verdict == "consistent":
            assert self.other.commit(staged.request).version == staged.version
            self.model.commit(staged)
        else:
            self._refused(staged, ErrorCode.INVALID_TABLE_STATE)

    @consistent
    @rule(point=points)
    def die(self, point: str) -> None:
        staged = self._stage()
        with POINTS[point].ended_by(simulate_death), pytest.raises(SimulatedDeath):
            self.table.commit(staged.request)
        if POINTS[point].committed:
            self.model.commit(staged, named=point != "after-the-commit")

    @consistent
    @rule(point=points)
    def append_during_a_commit(self, point: str) -> None:
        staged, row = self._stage(), self._row()
        with POINTS[point].interrupted_by(lambda: self.other.append(row)):
            if POINTS[point].committed:
                self.table.commit(staged.request)
                self.model.commit(staged)
            else:
                self._refused(staged, ErrorCode.CONCURRENT_MODIFICATION)
        self.model.commit(self.model.staged_now(row))

    @consistent
    @rule(point=points)
    def append_directly_during_a_commit(self, point: str) -> None:
        staged, row = self._stage(), self._row()
        with POINTS[point].interrupted_by(lambda: self.other.append_directly(row)):
            assert self.table.commit(staged.request).version == staged.version
        self.model.commit(staged, named=point in ("before-the-staged-manifest-goes", "at-the-end"))
        self.model.commit_directly(row)

    @openable
    @rule()
    def append_directly(self) -> None:
        row = self._row()
        assert self.table.append_directly(row) == len(self.model.storage) + 1
        self.model.commit_directly(row)

    @openable
    @rule()
    def read(self) -> None:
        assert tuple(self.table.rows()) == self.model.versions[-1]
        self.model.finish()

    @rule()
    def read_by_path(self) -> None:
        assert tuple(self.table.rows_by_path()) == self.model.storage[-1]

    @openable
    @rule()
    def list_versions(self) -> None:
        listed = self.other.namespace.list_table_versions({"id": self.table.parts}).versions
        assert [one.version for one in listed] == list(range(self.model.oldest, self.model.version + 1))
        self.model.finish()

    @rule()
    def compare(self) -> None:
        self.model.finish()
        found = self.other.namespace.compare_table(self.table.parts)
        assert (found.verdict, found.metastore_version) == (self.model.verdict, self.model.version)
        assert found.storage_version == len(self.model.storage)

    @rule()
    def adopt(self) -> None:
        self.model.finish()
        if self.model.diverged:
            with refused_with(ErrorCode.INVALID_TABLE_STATE, "abandon"):
                self.table.namespace.adopt_table(self.table.parts)
        found = self.table.namespace.adopt_table(self.table.parts, abandon=self.model.diverged)
        assert found.verdict == self.model.verdict
        self.model.adopt()

    @precondition(lambda self: self.model.verdict == "storage_ahead")
    @rule()
    def advance(self) -> None:
        old, new = self.model.version, len(self.model.storage)
        for moved in (True, False):
            assert (
                self.table.namespace.advance_table_version(self.table.parts, expected=old, new=new) is moved
            )
        self.model.adopt()

    @bypassed
    @rule()
    def remove_manifests_of_direct_commits(self) -> None:
        kept = self.model.version - self.model.diverged
        for version in self.table.finals:
            if version > kept:
                self.table.remove(self.table.final(version))
        self.model.forget_direct_commits()

    @consistent
    @precondition(lambda self: self.model.version > self.model.oldest)
    @rule()
    def lose_the_newest_manifest(self) -> None:
        self.model.finish()
        self.table.namespace.compare_table(self.table.parts)  # no record of it is left
        self.table.remove(self.table.final(self.model.version))
        self.model.lose_the_newest_manifest()

    @consistent
    @rule()
    def clean_up(self) -> None:
        self.table.open_by_path().cleanup_old_versions(older_than=timedelta(0))
        self.model.oldest = len(self.model.storage)

    @consistent
    @rule()
    def convert_there_and_back(self) -> None:
        row = self._row()
        assert self.other.namespace.convert_table(self.table.parts, managed_by="storage")
        self.model.finish()
        self.table.append(row)
        self.model.commit(self.model.staged_now(row))
        assert self.table.namespace.convert_table(self.table.parts, managed_by="impl")
        self.model.last = None

    @invariant()
    def metastore_has_the_committed_version(self) -> None:
        assert self.table.version == self.model.version

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self.adopt()
            self.append()
            self.read()
            self.read_by_path()

    def _row(self) -> int:
        self.newest_row += 1
        return self.newest_row

    def _stage(self) -> Staged:
        row = self._row()
        staged = self.model.staged_now(row, self.table.stage(row))
        self.model.finish()
        self.model.staged.append(staged)
        return staged

    def _refused(self, staged: Staged, code: ErrorCode) -> None:
        with refused_with(code):
            self.table.commit(staged.request)
