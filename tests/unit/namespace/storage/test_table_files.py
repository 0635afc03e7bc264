"""Files at a table's location that others wrote."""

from pathlib import Path

import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import manifest_names


def test_a_manifest_of_hundreds_of_megabytes_is_not_read(tmp_path: Path) -> None:
    manifest = tmp_path / "_versions" / manifest_names(1)[0]
    manifest.parent.mkdir()
    with manifest.open("wb") as huge:
        huge.truncate(2**40)  # without content: a sparse file
    with pytest.raises(InvalidTableStateError, match=r"has 1099511627776 bytes; expected at most 268435456"):
        Manifests(str(tmp_path), {}).read_version(1)
    # A version that is asked for by its number isn't opened by Lance either, which has no limit.
    with pytest.raises(InvalidTableStateError, match="expected at most"):
        Manifests(str(tmp_path), {}).find(1)
