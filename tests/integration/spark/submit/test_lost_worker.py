"""A worker is lost while YARN runs the driver of its task: the retry waits for that driver."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import lance
import psutil
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.airflow.tables import Table
from tests.integration.spark.submit.ingestion_sources import processes_that_show
from tests.servers.yarn import Yarn

pytestmark = pytest.mark.long

TREE = Path(__file__).parents[4]
SECONDS = 300


class Try:
    """A try of the task in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def lose(self) -> None:
        """End it with all processes that it started, as the loss of its machine does."""
        lost = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        assert len(lost) > 1
        for process in lost:
            process.kill()
        self.process.wait(SECONDS)

    def result(self) -> dict[str, Any]:
        """What it returned."""
        assert self.process.wait(SECONDS) == 0, self.log[-5000:]
        [line] = [line for line in self.log.splitlines() if line.startswith('{"')]
        result: dict[str, Any] = json.loads(line)
        return result


@pytest.fixture
def orders(metastore: MetastoreServer, database: str, tmp_path: Path) -> Iterator[Table]:
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        table = Table(namespace, database, "orders")
        table.declare()
        yield table


@pytest.fixture
def start_try(
    yarn: Yarn, metastore: MetastoreServer, connect: Callable[..., str], orders: Table, tmp_path: Path
) -> Iterator[Callable[[int], Try]]:
    """Start the try with this number; its driver waits for the file ``released``."""
    connect(host=metastore.uri, extra={"root": str(tmp_path)})
    connect("yarn", "spark", host="yarn", extra={"deploy-mode": "cluster"})
    where = {"table": str(orders), "spark_conn_id": "yarn", "spark_conf": yarn.spark_conf}
    arguments = {**where, "op_kwargs": {"folder": str(tmp_path)}}
    command = [sys.executable, "-m", "tests.integration.spark.submit.run_try"]
    with ExitStack() as started:

        def start(number: int) -> Try:
            file = tmp_path / f"try-{number}.log"
            log = started.enter_context(file.open("w"))
            given = [*command, json.dumps({**arguments, "try_number": number})]
            environ = {**os.environ, "PYTHONPATH": str(TREE)}
            process = started.enter_context(
                subprocess.Popen(given, stdout=log, stderr=subprocess.STDOUT, cwd=TREE, env=environ)
            )
            started.callback(process.kill)
            return Try(process, file)

        yield start
        (tmp_path / "released").touch()  # whatever is still running ends


@pytest.fixture
def lost(start_try: Callable[[int], Try], tmp_path: Path) -> None:
    """The first try, whose worker was lost while its driver was running."""
    first = start_try(1)
    wait_until((tmp_path / "running").exists)
    first.lose()


@pytest.mark.usefixtures("lost")
def test_a_retry_waits_for_the_driver_of_a_lost_worker(
    yarn: Yarn, start_try: Callable[[int], Try], orders: Table, tmp_path: Path
) -> None:
    [application] = applications_of(yarn, tmp_path)

    second = start_try(2)
    wait_until(lambda: f"Reattached to driver {application}" in second.log)
    (tmp_path / "released").touch()
    result = second.result()

    assert (result["version"], result["inserted"], result["outcome"]) == (1, 10, "done")
    assert f"Driver {application} has succeeded" in second.log
    assert applications_of(yarn, tmp_path) == [application]
    data = lance.dataset(namespace_client=orders.namespace, table_id=orders.id)
    assert (data.version, data.count_rows()) == (1, 10)


@pytest.mark.usefixtures("lost")
def test_a_retry_that_is_killed_ends_the_driver_that_it_waits_for(
    yarn: Yarn, start_try: Callable[[int], Try], tmp_path: Path
) -> None:
    second = start_try(2)
    wait_until(lambda: "Reattached to driver" in second.log)

    second.process.send_signal(signal.SIGTERM)

    assert second.process.wait(SECONDS) != 0
    assert "the task was killed" in second.log
    wait_until(lambda: not processes_that_show(str(yarn.containers)))
    assert len(applications_of(yarn, tmp_path)) == 1


@pytest.mark.usefixtures("lost")
def test_a_retry_submits_another_driver_if_that_of_the_lost_worker_fails(
    yarn: Yarn, start_try: Callable[[int], Try], orders: Table, tmp_path: Path
) -> None:
    [application] = applications_of(yarn, tmp_path)
    second = start_try(2)
    wait_until(lambda: "Reattached to driver" in second.log)

    for process in psutil.process_iter(["cmdline"]):
        if application in " ".join(process.info["cmdline"] or ()):
            process.kill()
    (tmp_path / "released").touch()
    result = second.result()

    assert f"Driver {application} failed or was killed" in second.log
    assert (result["version"], result["inserted"], result["outcome"]) == (1, 10, "done")
    assert len(applications_of(yarn, tmp_path)) == 2


def applications_of(yarn: Yarn, folder: Path) -> list[str]:
    """The applications of a test: their drivers were told this folder."""
    scripts = yarn.containers.rglob("application_*/container_*/lance_job.py")
    return sorted({file.parts[-3] for file in scripts if str(folder) in file.read_text()})


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
