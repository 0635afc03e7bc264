"""Import contracts between packages: those of import-linter in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_imports_point_one_way(root: Path) -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run([lint_imports, "--no-cache"], cwd=root, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
