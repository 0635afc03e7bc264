"""Clean-ups beside clients that need old versions, in two processes that really run at once, many times."""

import random
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, TableVersionNotFoundError

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_removals import REMOVALS
from airflow_provider_lancens.namespace.storage.version_tags import create_tag, list_tags
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from tests.support.bookmarks import move_bookmark

VERSIONS = 30
USES = ("tag", "bookmark", "restore")


def use(root: str, kind: str, version: int, start: float) -> bool:
    """Tag, bookmark or restore a version; return whether that succeeded."""
    spec = NamespaceSpec("dir", {"root": root})
    dataset = lance.dataset(f"{root}/t.lance")
    wait_until(start)
    try:
        match kind:
            case "tag":
                create_tag(dataset, Manifests(f"{root}/t.lance", {}), "kept", version)
            case "bookmark":
                move_bookmark(spec, "t", "consumer", version)
            case _:
                restore_version(spec, "t", version)
    except (ConcurrentModificationError, TableVersionNotFoundError):
        return False
    return True


def clean_up(root: str, start: float) -> int:
    """Remove all versions that nobody needs; return their number."""
    wait_until(start)
    return clean_up_versions(NamespaceSpec("dir", {"root": root}), "t", older_than=timedelta(0)).versions


def wait_until(start: float) -> None:
    """Both processes begin at a time, which is what a race needs."""
    while time.time() < start:
        pass


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with many versions, each with a row of its number."""
    root = tmp_path_factory.mktemp("template")
    for number in range(1, VERSIONS + 1):
        lance.write_dataset(pa.table({"id": [number]}), str(root / "t.lance"), mode="overwrite")
    return root


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", USES)
@pytest.mark.parametrize("trials", [334])
def test_what_is_acknowledged_is_kept(template: Path, tmp_path: Path, kind: str, trials: int) -> None:
    random.seed(f"{kind} {trials}")
    used, removed = 0, 0
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for trial in range(trials):
            root = tmp_path / str(trial)
            shutil.copytree(template, root)
            version, delay = random.randrange(1, VERSIONS), random.uniform(0, 0.3)
            start = time.time() + 0.02
            cleaning = processes.submit(clean_up, str(root), start)
            using = processes.submit(use, str(root), kind, version, start + delay)
            removed += cleaning.result() > 0
            acknowledged = using.result()
            used += acknowledged
            clean_up(str(root), 0)
            check(root, kind, version, acknowledged=acknowledged)
            shutil.rmtree(root)
    assert removed == trials
    assert 0 < used < trials, "the delays leave no race"


def check(root: Path, kind: str, version: int, *, acknowledged: bool) -> None:
    """Check that the newest version and each tagged one can be read."""
    location = str(root / "t.lance")
    newest = lance.dataset(location, session=lance.Session())
    restored = kind == "restore" and acknowledged
    assert newest.to_table()["id"].to_pylist() == [version if restored else VERSIONS]
    tagged = {tag["version"] for tag in list_tags(newest).values()}
    if kind != "restore":
        assert tagged == ({version} if acknowledged else set())
    for number in tagged:
        assert lance.dataset(location, number, session=lance.Session()).to_table()["id"].to_pylist() == [
            number
        ]
    assert not list(Manifests(location, {}).below(REMOVALS))
