"""A command in place of spark-submit."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def binary(tmp_path: Path) -> Callable[[str], str]:
    """A command that records its arguments, and does what the test defines."""

    def make(does: str) -> str:
        file = tmp_path / "spark-submit"
        file.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{does}\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[], list[str]]:
    """The recorded arguments of that command."""
    return lambda: (tmp_path / "asked").read_text().splitlines()
