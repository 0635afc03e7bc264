"""``python -m airflow_provider_lancens.embedded``: run a metastore until it is interrupted."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_lancens.embedded.exceptions import EmbeddedMetastoreError
from airflow_provider_lancens.embedded.server import EmbeddedMetastore


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a folder until SIGTERM or SIGINT, and return the exit code."""
    options = _parser().parse_args(arguments)
    # Both explicitly: a shell starts background jobs with SIGINT ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        return _serve(options.folder, options.port)
    except KeyboardInterrupt:
        return 0
    except EmbeddedMetastoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_lancens.embedded",
        description="Run a real Hive Metastore from PySpark's jars on loopback until SIGTERM or Ctrl-C.",
    )
    parser.add_argument(
        "--folder", type=Path, required=True, help="folder for its data, which is kept when it stops"
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any free port)")
    return parser


def _serve(folder: Path, port: int) -> int:
    with EmbeddedMetastore(folder, port) as metastore:
        sys.stdout.write(_welcome(metastore))
        sys.stdout.flush()
        code = metastore.wait()
        sys.stderr.write(f"The metastore exited unexpectedly with code {code}.\n{metastore.log_tail()}\n")
        return 1


def _welcome(metastore: EmbeddedMetastore) -> str:
    port = metastore.uri.rpartition(":")[2]
    return (
        f"Hive Metastore ready at {metastore.uri} (pid {metastore.pid}, folder {metastore.folder})\n"
        "Use it from Airflow: "
        f"airflow connections add lance_default --conn-type lance_hive2 --conn-host 127.0.0.1 "
        f'--conn-port {port} --conn-extra \'{{"root": "{metastore.warehouse}"}}\'\n'
        "Stop it: Ctrl-C\n"
    )


if __name__ == "__main__":
    sys.exit(main())
