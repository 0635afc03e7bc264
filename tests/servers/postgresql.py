"""A real PostgreSQL as the database of a metastore or of Airflow, on loopback, for one test run."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.servers.hadoop import free_port

START_SECONDS = 60
USER = "hive"
"""Of all databases."""


@contextmanager
def postgresql() -> Iterator[int]:
    """Run a server that requires no password from this machine; yield its port."""
    # Not in pytest's folder: PostgreSQL refuses to run as root, and no other user can read that folder.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    try:
        _hand_over(folder)
        data = folder / "data"
        subprocess.run(
            [
                *_as_another_user(),
                program("initdb"),
                "--auth=trust",
                f"--username={USER}",
                "--no-sync",
                "-D",
                data,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with _running(data) as port:
            yield port
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def metastore_settings(port: int, database: str) -> Mapping[str, str]:
    """Create a database, and return the settings for a metastore that uses it."""
    create_database(port, database)
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{port}/{database}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": USER,
        "javax.jdo.option.ConnectionPassword": "",
    }


def create_database(port: int, database: str) -> None:
    """Create a database."""
    address = ["-h", "127.0.0.1", "-p", str(port), "-U", USER]
    subprocess.run([program("createdb"), *address, database], check=True)


@contextmanager
def _running(data: Path) -> Iterator[int]:
    port = free_port()
    options = [
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-k",
        data,
        "-c",
        "fsync=off",
        "-c",
        "log_min_messages=fatal",
    ]
    # It ends with the tests, even if they are killed: SIGINT is its fast shutdown.
    command = ["setpriv", "--pdeathsig", "INT", *_as_another_user()[1:], program("postgres"), "-D", data]
    with subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_ready(process, port)
            yield port
        finally:
            process.terminate()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    ask = [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    while subprocess.run(ask, check=False).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL did not come up on port {port}.")
        time.sleep(0.1)


def _as_another_user() -> list[str]:
    drop = ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
    return ["setpriv", *(drop if os.getuid() == 0 else [])]


def _hand_over(folder: Path) -> None:
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)


def program(name: str) -> str:
    """Return the path of one of its programs."""
    # Debian keeps the server's programs out of PATH.
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    for folder in reversed(folders):
        if (folder / name).exists():
            return str(folder / name)
    found = shutil.which(name)
    if not found:
        raise RuntimeError(f"No {name}: install PostgreSQL (apt-get install postgresql).")
    return found
