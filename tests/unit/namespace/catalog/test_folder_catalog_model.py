"""Random changes of a folder's catalog: tables, rows, files and plans are those of a plain model."""

from pathlib import Path

import pytest

from tests.unit.namespace.catalog.folder_model import PROPERTIES, FolderModel

STEPS = 20


@pytest.mark.parametrize("mode", PROPERTIES)
@pytest.mark.parametrize("seed", range(3))
def test_a_folder_has_the_tables_and_files_of_the_model(tmp_path: Path, seed: int, mode: str) -> None:
    model = FolderModel(tmp_path / "lake", seed, mode)

    for _ in range(STEPS):
        model.step()
