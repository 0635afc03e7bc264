"""One soak: everything it starts, the hour itself, and what was observed."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lance
import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore, server
from quickstart.home import Home
from quickstart.servers import COMPONENTS
from tests.bytecode import environment_with_bytecode
from tests.e2e.soak.commits import Committer
from tests.e2e.soak.database import AirflowOnPostgresql, database_settings
from tests.e2e.soak.form import Form
from tests.e2e.soak.processes import Sampler
from tests.e2e.soak.waits import Waits
from tests.e2e.soak.wake_ups import Update
from tests.servers.postgresql import postgresql

DAGS = Path(__file__).parent / "dags"
PREPARATION_SECONDS = 7200
"""At most, until all waits are deferred: 500 task starts take a quarter of an hour on two idle cores."""
_WATCHED = "select count(distinct asset_id) from asset_event"
_UPDATES = "select extra, timestamp from asset_event order by id"
_FAILED = (
    "select dag_id, run_id, task_id, state from task_instance where state in ('failed', 'upstream_failed')"
)
_MAINTAINED = (
    "select task_id, state, try_number from task_instance where dag_id = 'soak_maintain' and state <> ''"
)


@dataclass(frozen=True)
class Soak:
    """The servers and processes of a soak."""

    form: Form
    home: Home
    metastore: EmbeddedMetastore
    airflow: AirflowOnPostgresql
    committer: Committer
    waits: Waits

    @property
    def root(self) -> Path:
        return self.home.folder / "lake"

    def processes(self) -> Mapping[str, int]:
        """The process of each component."""
        own = {"metastore": self.metastore.pid, "committer": self.committer.pid}
        return {**own, **{name: self.airflow.pid(name) for name in COMPONENTS}}

    def prepare(self) -> float:
        """Return the time when all tables have a version and are watched, and all waits are deferred."""
        commits, airflow = self.committer.commits, self.airflow
        airflow.until(airflow.healthy)
        airflow.until(lambda: commits.count == len(self.form.tables))
        airflow.unpause("soak_watch")
        airflow.reparse("soak_watch")  # so that Airflow watches the assets of the unpaused DAG
        airflow.until(lambda: airflow.rows(_WATCHED)[0][0] == len(self.form.tables))
        self.waits.arm()
        airflow.until(self._all_deferred, patience=PREPARATION_SECONDS)
        airflow.unpause("soak_maintain")
        self.committer.go_on()
        return time.time()

    def _all_deferred(self) -> bool:
        self.waits.observe()
        return self.waits.deferred_over_time[-1] == self.form.waits

    def last(self) -> Sampler:
        """Let the form's time pass, with a look at everything each second, and return the samples."""
        self.waits.deferred_over_time.clear()
        with Sampler(self.processes) as sampler:
            self._observe(self.form.seconds)
        sampler.check()
        self.committer.check()
        self.committer.end()
        self._observe(self.form.patience)  # what the last commits cause
        return sampler

    def _observe(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.waits.observe()
            self.airflow.check()
            time.sleep(1)

    def updates(self) -> dict[str, list[Update]]:
        """All updates of the watched tables, in order, by table."""
        updates: dict[str, list[Update]] = {table: [] for table in self.form.tables}
        for extra, timestamp in self.airflow.rows(_UPDATES):
            advance = extra["payload"]
            update = Update(
                advance["table"], advance["previous_version"], advance["version"], timestamp.timestamp()
            )
            updates[update.table].append(update)
        return updates

    def failed_tasks(self) -> list[tuple[str, ...]]:
        return self.airflow.rows(_FAILED)

    def maintenance(self) -> list[tuple[str, str, int]]:
        """Name, state and number of attempts of each task that maintains a table."""
        return self.airflow.rows(_MAINTAINED)

    def rows(self) -> dict[str, int]:
        """How many rows each table has."""
        from airflow_provider_lancens.namespace import Hive2Namespace

        namespace = Hive2Namespace(uri=self.metastore.uri, root=str(self.root))
        return {
            table: lance.dataset(namespace_client=namespace, table_id=table.split("$")).count_rows()
            for table in self.form.tables
        }


@contextmanager
def soaking(form: Form, folder: Path) -> Iterator[Soak]:
    """Start everything in a folder; all of it ends with the block."""
    home = Home(folder)
    with pytest.MonkeyPatch.context() as patch, postgresql() as port, metastore_in(home) as metastore:
        root = home.folder / "lake"
        settings = {**form.environment(metastore.uri, root), **database_settings(port)}
        for name, value in _settings(home, settings).items():
            patch.setenv(name, value)
        home.migrate()
        with (
            Committer(form, metastore.uri, root, home.log("committer")) as committer,
            AirflowOnPostgresql(home, port, tasks_at_once=3) as airflow,
        ):
            waits = Waits(form, airflow, committer.commits)
            yield Soak(form, home, metastore, airflow, committer, waits)


@contextmanager
def metastore_in(home: Home) -> Iterator[EmbeddedMetastore]:
    """A metastore with a small heap, all of which is in memory from the start.

    Otherwise the JVM takes it page by page as it allocates, for more than an hour, which looks like a leak.
    """
    options = (*server._JVM_OPTIONS, "-XX:+AlwaysPreTouch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_JVM_OPTIONS", options)
        with EmbeddedMetastore(home.folder / "metastore", heap="128m") as metastore:
            yield metastore


def _settings(home: Home, of_form: Mapping[str, str]) -> dict[str, str]:
    return {
        **environment_with_bytecode(home.folder),
        "AIRFLOW_HOME": str(home.airflow),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",  # the files don't change
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        **of_form,
    }
