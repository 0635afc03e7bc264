"""Random changes of a folder's catalog: tables, rows, files and plans are those of a plain model."""

from pathlib import Path

import pytest

from tests.unit.namespace.catalog.folder_model import FolderModel

STEPS = 25


@pytest.mark.parametrize("lists_folders", [True, False], ids=["folders", "entries"])
@pytest.mark.parametrize("seed", range(5))
def test_a_folder_has_the_tables_and_files_of_the_model(
    tmp_path: Path, seed: int, lists_folders: bool
) -> None:
    model = FolderModel(tmp_path / "lake", seed, lists_folders=lists_folders)

    for _ in range(STEPS):
        model.step()
