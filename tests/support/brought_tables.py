"""Hive tables of all types, brought to Lance by the script `bring_tables` in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.servers.maven import jars_of

ROOT = Path(__file__).parents[1]
SECONDS = 280
FACTS = [
    {
        "id": 1,
        "amount": "1.50",
        "at": "2026-01-01 01:02:03+00:00",
        "day": "2026-01-02",
        "code": "ab  ",
        "name": "cd",
        "tags": ["a", None],
        "scores": [["k", 1]],
        "place": {"x": 0.5, "y": 1.5},
    },
    {
        "id": 2,
        **dict.fromkeys(("amount", "at", "day", "code", "name", "tags", "scores", "place")),
    },
]
EVENTS = [
    {"id": 1, "kind": "in", "day": "2026-01-01", "shop": "a b"},
    {"id": 2, "kind": "out", "day": "2026-01-02", "shop": "0042"},
    {"id": 3, "kind": "in", "day": None, "shop": "a=b"},
]
PLAIN = [{"id": 1, "name": "x"}]
BROUGHT = {"facts": FACTS, "events": EVENTS, "plain": PLAIN}


def bring(database: str, folder: Path, **conf: str) -> "subprocess.CompletedProcess[str]":
    """Run `bring_tables` with the connection `lake` of the environment."""
    script = ROOT / "integration" / "spark" / "session" / "bring_tables.py"
    return subprocess.run(
        [sys.executable, script, "lake", database, str(folder), json.dumps(conf)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def rows(done: "subprocess.CompletedProcess[str]") -> dict[str, list[dict[str, Any]]]:
    assert done.returncode == 0, done.stderr[-4000:]
    brought: dict[str, list[dict[str, Any]]] = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith("{"))  # Hive's client prints, too
    )
    return brought


def client_of_hive_4() -> dict[str, str]:
    """Spark's configuration for the client of Hive 4, which its own can't replace."""
    jars = jars_of(ROOT / "servers" / "hive-4.0.1-client.xml")
    return {
        "spark.sql.hive.metastore.version": "4.0.1",
        "spark.sql.hive.metastore.jars": "path",
        "spark.sql.hive.metastore.jars.path": f"file://{jars}/*.jar",
    }
