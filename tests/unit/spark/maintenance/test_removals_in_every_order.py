"""A clean-up beside clients that need the versions that it removes, each stopped before each of its requests.

While one is stopped, the other runs from its beginning to its end, and then the next clean-up does: as if the
first one had died. Then the first one resumes. After each of these steps the newest version must be readable,
and so must be each version whose tag, bookmark or restore was acknowledged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, TableVersionNotFoundError

from airflow_provider_lancens.namespace.config import STORAGE_PREFIX
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_removals import REMOVALS
from airflow_provider_lancens.namespace.storage.version_tags import create_tag, list_tags
from airflow_provider_lancens.spark import NamespaceSpec, move_bookmark
from airflow_provider_lancens.spark.maintenance import clean_up_versions, restore_version
from tests.servers.s3_double import S3Double
from tests.servers.stops import run_stopped, stops_of

LOCATION = "s3://lake/t.lance"
OLD, NEWEST = 2, 4
NAME = "consumer"

Action = Callable[["Lake"], object]


@dataclass
class Lake:
    """A table of four versions, each with one row."""

    s3: S3Double

    def __post_init__(self) -> None:
        for number in range(1, NEWEST + 1):
            rows = pa.table({"id": [number]})
            lance.write_dataset(rows, LOCATION, mode="overwrite", storage_options=self.s3.storage)
        self.dataset.tags.create(NAME, NEWEST - 1)

    @property
    def spec(self) -> NamespaceSpec:
        storage = {f"{STORAGE_PREFIX}{name}": value for name, value in self.s3.storage.items()}
        return NamespaceSpec("dir", {"root": "s3://lake", **storage})

    @property
    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(LOCATION, storage_options=self.s3.storage, session=lance.Session())

    @property
    def files(self) -> Manifests:
        return Manifests(LOCATION, self.s3.storage)

    def read(self, version: int) -> list[int]:
        dataset = lance.dataset(LOCATION, version, storage_options=self.s3.storage, session=lance.Session())
        return dataset.to_table()["id"].to_pylist()

    def check(self, *, restored: bool | None) -> None:
        """Check that the newest version is whole, as is each that a tag names.

        Args:
            restored: whether a restore was acknowledged; None if one is running.
        """
        newest = self.read(self.dataset.version)
        assert newest in ([[OLD], [NEWEST]] if restored is None else [[OLD if restored else NEWEST]])
        for tag in list_tags(self.dataset).values():
            assert self.read(tag["version"])

    def leftovers(self) -> list[str]:
        return [file.path for file in self.files.below(REMOVALS)]


@pytest.fixture
def lake() -> Iterator[Lake]:
    with S3Double("lake") as s3:
        yield Lake(s3)


def clean_up(lake: Lake) -> object:
    return clean_up_versions(lake.spec, "t", older_than=timedelta(0))


def tag(lake: Lake) -> object:
    return create_tag(lake.dataset, lake.files, "kept", OLD)


def bookmark(lake: Lake) -> object:
    return move_bookmark(lake.spec, "t", NAME, OLD)


def restore(lake: Lake) -> object:
    return restore_version(lake.spec, "t", OLD)


USES = {"tag": tag, "bookmark": bookmark, "restore": restore}


def is_acknowledged(run: Callable[[], object]) -> bool:
    """Whether a run succeeds; a clean-up may refuse it, in words."""
    try:
        run()
    except (ConcurrentModificationError, TableVersionNotFoundError):
        return False
    return True


def stops(first: Action) -> int:
    """Count the requests of a run without others."""
    with S3Double("lake") as s3:
        lake = Lake(s3)
        return stops_of(s3, lambda: first(lake))


def play(lake: Lake, first: Action, second: Action, at: int) -> None:
    """Run one beside the other, and then a clean-up."""
    restored: bool | None = False

    def others() -> None:
        nonlocal restored
        acknowledged = is_acknowledged(lambda: second(lake))
        restored = None if first is restore else acknowledged and second is restore
        lake.check(restored=restored)
        is_acknowledged(lambda: clean_up(lake))
        lake.check(restored=restored)

    acknowledged = run_stopped(lake.s3, at, lambda: is_acknowledged(lambda: first(lake)), others)
    restored = acknowledged if first is restore else restored
    lake.check(restored=restored)
    clean_up(lake)
    lake.check(restored=restored)
    assert lake.leftovers() == []


FEW, ALL = 7, 1
"""Each change stops at every seventh request, the slow tests at each."""
STEPS = [FEW, pytest.param(ALL, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", USES)
def test_a_clean_up_that_is_stopped_anywhere_removes_nothing_that_is_needed(name: str, step: int) -> None:
    for at in range(0, stops(clean_up), step):
        with S3Double("lake") as s3:
            play(Lake(s3), clean_up, USES[name], at)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", USES)
def test_nothing_is_removed_that_a_client_needs_which_is_stopped_anywhere(name: str, step: int) -> None:
    for at in range(0, stops(USES[name]), step):
        with S3Double("lake") as s3:
            play(Lake(s3), USES[name], clean_up, at)
