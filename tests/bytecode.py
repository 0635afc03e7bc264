"""Compiled modules for measured processes, as in a running Airflow."""

import os
import sysconfig
from pathlib import Path

_SOURCES = (Path(__file__).parent, Path(sysconfig.get_path("purelib")))


def environment_with_bytecode(folder: Path) -> dict[str, str]:
    """The environment of a Python that stores bytecode: beside the source, or in a folder."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if not all(os.access(sources, os.W_OK) for sources in _SOURCES):
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "pycache")
    return environment
