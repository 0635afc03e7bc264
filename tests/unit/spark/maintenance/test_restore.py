"""Restores of versions whose files are missing, and why they are."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidTableStateError

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_removals import recorded_removal
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.maintenance.restore import restore_version


def test_a_version_whose_files_a_clean_up_is_removing_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    location = tmp_path / "t.lance"
    for number in range(3):
        lance.write_dataset(pa.table({"id": [number]}), str(location), mode="overwrite")
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})
    first = lance.dataset(str(location), 1).get_fragments()[0].data_files()[0].path
    (location / "data" / first).unlink()

    with (
        recorded_removal(Manifests(str(location), {}), [1, 2]),
        pytest.raises(
            ConcurrentModificationError, match="version 1 is being removed by a clean-up that began"
        ),
    ):
        restore_version(spec, "t", 1)

    with pytest.raises(InvalidTableStateError, match="version 1 refers to files that were removed"):
        restore_version(spec, "t", 1)
    assert restore_version(spec, "t", 2).is_done
