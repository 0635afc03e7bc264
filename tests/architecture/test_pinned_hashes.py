"""The constraints and their hashes, and what the scripts do with them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

PIN = re.compile(r"^([\w.-]+==\S+)( ; .*?)?((?: --hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE)
OPTIONS = '. scripts/_environment && pin_options && cat "$venv/constraints.hashes"'


def pins(file: Path) -> dict[str, int]:
    """How many hashes each pin of a file has."""
    found = PIN.findall(file.read_text())
    assert len(found) == len(file.read_text().splitlines())
    return {pin: hashes.count("--hash") for pin, _, hashes in found}


def test_every_pinned_version_has_hashes(root: Path) -> None:
    """Otherwise run ``./scripts/hash-constraints``."""
    hashed = pins(root / "constraints.hashes")

    assert [pin for pin in pins(root / "constraints.txt") if not hashed.get(pin)] == []


def test_hashes_of_the_pinned_versions_alone_are_compared_and_pyspark_when_it_is_built(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "pins.txt").write_text("arrow==1.4.0\npyspark==4.3.0\nsix==0.0.1\n")
    names = {"LANCENS_VENV": str(tmp_path), "LANCENS_CONSTRAINTS": str(tmp_path / "pins.txt")}

    used = subprocess.run(
        ["bash", "-c", OPTIONS],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", **names},
        capture_output=True,
        text=True,
    )

    assert [line.split()[0] for line in used.stdout.splitlines()] == ["arrow==1.4.0"], used.stderr


def test_a_user_other_than_root_is_not_given_sudo_without_a_question(root: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    for command, does in {
        "id": "echo 1000",
        "sudo": f'echo "$@" >>{calls}',
        "apt-get": f"echo apt >>{calls}",
    }.items():
        (tmp_path / command).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / command).chmod(0o755)
    install = ". scripts/_environment && install_packages openjdk"
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", install],
            cwd=root,
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    refused = run()
    assert (refused.returncode, calls.exists()) == (1, False)
    assert "sudo apt-get install" in refused.stderr
    assert "LANCENS_SUDO=yes" in refused.stderr
    assert run(LANCENS_SUDO="yes").returncode == 0
    assert "install --yes --no-install-recommends openjdk" in calls.read_text()
