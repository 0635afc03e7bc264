"""Sets the modification times of files, so that tests needn't wait."""

import os
import time
from datetime import timedelta
from pathlib import Path

DAY = timedelta(days=1)


def age(*files: Path, by: timedelta = 30 * DAY) -> None:
    then = time.time() - by.total_seconds()
    for file in files:
        os.utime(file, (then, then))


def age_all(folder: Path) -> None:
    age(*(file for file in folder.rglob("*") if file.is_file()))


def files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def began_long_ago(location: str, path: str, by: timedelta) -> None:
    """Make a write look days old; its lease was renewed recently."""
    age(Path(location, path), by=by)
