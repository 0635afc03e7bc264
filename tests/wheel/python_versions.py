"""The supported Python versions, and their interpreters on this machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13")
RUNNING = "{}.{}".format(*sys.version_info)


def interpreter(version: str) -> str | None:
    """The path of a Python of this version: the running one, one of pyenv, or one in ``PATH``."""
    if version == RUNNING:
        return sys._base_executable  # type: ignore[attr-defined,no-any-return]  # not the virtual environment's
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    candidates = [*map(str, sorted(pyenv.glob(f"{version}.*/bin/python"))), shutil.which(f"python{version}")]
    return next((path for path in candidates if path and _is(path, version)), None)


def _is(path: str, version: str) -> bool:
    """Whether it can run, and has this version; a shim of pyenv may fail."""
    asked = [path, "-c", "import ensurepip, sys; print('{}.{}'.format(*sys.version_info))"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version
