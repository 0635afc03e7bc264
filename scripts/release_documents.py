"""Write the documents of a release beside its wheel and its sdist: what they need, and where they come from.

    python scripts/release_documents.py dist

- ``<name>.cdx.json``: a software bill of materials (CycloneDX): each package that is installed with the wheel
  and its extras at the versions in ``constraints.txt``, with the hashes of its files.
- ``<name>.intoto.json``: the provenance of wheel and sdist, as a statement of in-toto with SLSA's predicate:
  their digests, the commit, and the versions of what built them.
- ``SHA256SUMS``: the digests of all of them, for ``sha256sum --check``.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TREE = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
SOURCE: str = PROJECT["urls"]["Source"]
NAME = f"{PROJECT['name']}-{PROJECT['version']}"
_UV = (sys.executable, "-m", "uv")
_PINS = ("constraints.txt", "constraints.hashes")


def main(folder: Path) -> None:
    """Write all documents into a folder with one wheel and one sdist."""
    built = [one for pattern in ("*.whl", "*.tar.gz") for one in folder.glob(pattern)]
    if len(built) != 2:
        sys.exit(f"{folder}: expected one wheel and one sdist, found {[file.name for file in built]}")
    write_bill_of_materials(folder / f"{NAME}.cdx.json")
    (folder / f"{NAME}.intoto.json").write_text(json.dumps(provenance(built), indent=2) + "\n")
    listed = sorted([*built, *folder.glob("*.json")])
    (folder / "SHA256SUMS").write_text("".join(f"{digest(file)}  {file.name}\n" for file in listed))


def write_bill_of_materials(file: Path) -> None:
    """Write what is installed with the wheel, with hashes, as CycloneDX."""
    extras = [part for extra in PROJECT["optional-dependencies"] for part in ("--extra", extra)]
    pinned = _run(
        *(*_UV, "pip", "compile", "--quiet", "--no-annotate", "--no-header"),
        *("--generate-hashes", "--constraints", "constraints.txt", *extras, "pyproject.toml"),
    )
    with TemporaryDirectory() as environment:
        python = str(Path(environment, "bin", "python"))
        _run(*_UV, "venv", "--quiet", "--clear", "--python", sys.executable, environment)
        constraints = (part for name in _PINS for part in ("--constraints", name))
        _run(*_UV, "pip", "install", "--quiet", "--python", python, *constraints, "--group", "release")
        _run(
            *(python, "-m", "cyclonedx_py", "requirements", "-", "--pyproject", "pyproject.toml"),
            *("--mc-type", "library", "--output-reproducible"),
            *("--output-format", "JSON", "--output-file", str(file)),
            text=pinned,
        )


def provenance(built: list[Path]) -> dict[str, Any]:
    """Return the statement about what was built, from which commit and by what."""
    commit = _run("git", "rev-parse", "HEAD").strip()
    backend = re.search(r"^hatchling==(\S+)", (TREE / "constraints.txt").read_text(), re.MULTILINE)
    made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": {"sha256": digest(file)}} for file in built],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{SOURCE}/blob/{commit}/scripts/release",
                "externalParameters": {"source": f"git+{SOURCE}@{commit}", "version": PROJECT["version"]},
                "resolvedDependencies": [
                    {"uri": f"git+{SOURCE}@{commit}", "digest": {"gitCommit": commit}},
                    *({"uri": name, "digest": {"sha256": digest(TREE / name)}} for name in _PINS),
                ],
            },
            "runDetails": {
                "builder": {
                    "id": os.environ.get("LANCENS_BUILDER", f"{SOURCE}/blob/{commit}/scripts/release"),
                    "version": {
                        "python": platform.python_version(),
                        "uv": version("uv"),
                        "hatchling": backend[1] if backend else "unknown",
                    },
                },
                "metadata": {"finishedOn": made},
            },
        },
    }


def digest(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _run(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, cwd=TREE, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
