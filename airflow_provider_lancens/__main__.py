"""`python -m airflow_provider_lancens`: commands for administrators of Airflow."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from airflow_provider_lancens.doctor import command as doctor


def main(arguments: list[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    parser = ArgumentParser(prog="python -m airflow_provider_lancens")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    checks = commands.add_parser("doctor", help="check a connection and all that it needs")
    doctor.add_arguments(checks)
    checks.set_defaults(run=doctor.main)
    chosen = parser.parse_args(arguments)
    return int(chosen.run(chosen))


if __name__ == "__main__":
    sys.exit(main())
