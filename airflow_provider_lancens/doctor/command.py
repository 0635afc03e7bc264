"""`python -m airflow_provider_lancens doctor CONNECTION [TABLE…]`."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_lancens.doctor.findings import Finding, run, worst

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook

_SERVER = "server"
"""The context in which Airflow reads connections from its database."""


def add_arguments(parser: ArgumentParser) -> None:
    """Define the command's arguments."""
    parser.add_argument("connection", metavar="CONNECTION", help="the id of an Airflow connection")
    parser.add_argument(
        "tables",
        metavar="TABLE",
        nargs="*",
        help="a table, such as sales.orders, or a namespace for all of its tables",
    )
    parser.add_argument(
        "--read-only", action="store_true", help="do not try the permissions on metastore and storage"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(arguments: Namespace) -> int:
    """Print what is found; return 1 if there is a problem."""
    # Like Airflow's own command line.
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", _SERVER)
    findings: list[Finding] = []
    for finding in diagnose(arguments.connection, arguments.tables, read_only=arguments.read_only):
        findings.append(finding)
        if not arguments.json:
            sys.stdout.write(f"{finding}\n")
            sys.stdout.flush()
    if arguments.json:
        content = {"level": worst(findings), "findings": [finding.as_dict() for finding in findings]}
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
    return int(worst(findings) == "problem")


def diagnose(conn_id: str, tables: Sequence[str] = (), *, read_only: bool = False) -> Iterator[Finding]:
    """Check this machine, a connection, its metastore and storage, and some tables.

    Args:
        conn_id: the id of an Airflow connection of any of this provider's types.
        tables: identifiers of tables, or of namespaces for all of their tables.
        read_only: whether to leave out what creates something: a namespace, a table and a file, which are
            removed again.

    Yields:
        What is found; nothing more once the metastore can't be reached.
    """
    from airflow_provider_lancens.doctor import checks
    from airflow_provider_lancens.hooks.lance_hook import LanceHook

    for subject in ("packages", "Java", "triggerer"):
        yield from run(subject, getattr(checks, f"check_{subject.lower()}"))
    try:
        hook = LanceHook.for_connection(conn_id)
    except Exception as error:  # noqa: BLE001 - reported like the errors of the checks
        yield Finding("problem", "connection", str(error))
    else:
        with closing(hook):
            yield from _diagnose_connection(hook, tables, read_only)


def _diagnose_connection(hook: LanceHook, tables: Sequence[str], read_only: bool) -> Iterator[Finding]:
    from airflow_provider_lancens.doctor import checks as metastore_checks
    from airflow_provider_lancens.doctor import checks as table_checks
    from airflow_provider_lancens.doctor import checks as wait_checks
    from airflow_provider_lancens.doctor.asset_check import check_assets

    yield from run("assets", partial(check_assets, hook))
    server = list(run("metastore", partial(metastore_checks.check_server, hook)))
    yield from server
    if worst(server) == "problem":
        return
    if not read_only:
        yield from run("permissions", partial(metastore_checks.check_permissions, hook))
    yield from run("waits", partial(wait_checks.check_waits, hook))
    for name in tables:
        yield from run(name, partial(table_checks.check_tables, hook, name))
