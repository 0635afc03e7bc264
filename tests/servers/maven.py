"""Downloads a server's jars with Maven, once per machine."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.servers.cache import made_once

TIMEOUT_SECONDS = 900


def jars_of(pom: Path) -> Path:
    """Return a folder with all dependencies of a POM; it is downloaded again only if the POM changes."""
    name = f"{pom.stem}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    return made_once(name, lambda folder: _copy_dependencies(pom, folder))


def _copy_dependencies(pom: Path, jars: Path) -> None:
    maven = shutil.which("mvn")
    if not maven:
        raise RuntimeError(
            f"No mvn in PATH: install Maven (apt-get install maven), for the jars of {pom.name}."
        )
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    result = subprocess.run(
        [maven, "--batch-mode", "--quiet", "--file", pom, *goal],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if result.returncode:
        raise RuntimeError(f"Maven could not bring the jars of {pom}:\n{result.stdout[-3000:]}")
