"""The lines of `docs/embedded-metastore.md` start a metastore, which a namespace reaches, and stop it."""

from pathlib import Path

import pytest

from tests.support.page_code import run_blocks


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    names = run_blocks("embedded-metastore")

    assert not names["metastore"].running  # type: ignore[attr-defined]
    assert names["metastore"].uri in names["namespace"].namespace_id()  # type: ignore[attr-defined]
