"""`python -m quickstart.ui`: the same DAG, connection and metastore in a running Airflow, until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from functools import partial

from rich.console import Console

from airflow_provider_lancens.embedded import EmbeddedMetastoreError
from quickstart.children import Children
from quickstart.home import DAG_ID, Home
from quickstart.progress import say
from quickstart.servers import AirflowServers, ServerError, ui_port
from quickstart.stopping import Stopped, stopping_on_signals

WATCHING_DAGS = ("lance_new_flights", "lance_worst_delays")
"""Unpaused at the start: they run when `lance_flights` has ingested a month."""
WAITING_DAG = WATCHING_DAGS[0]

SHOWN = """
  [bold]{url}/dags/{dag}[/]

  Press Trigger: each run ingests one month, the first that is not ingested yet or the one that you choose.
  A sensor of [bold]{waiting}[/] is already waiting in the triggerer for what it commits, and the asset
  of the table of delays starts [bold]lance_worst_delays[/]. The other examples can be triggered too.
  The connection is at Admin > Connections. Log in as [bold]admin[/] with the password [bold]{password}[/].
  Logs: {logs}. Press Ctrl-C to stop; tables and history are kept in {folder}.
"""


def main() -> int:
    """Start everything, print its URL, and wait."""
    console, children = Console(), Children()
    try:
        with stopping_on_signals(children, partial(say, console)):
            serve(Home.chosen(), console, children)
    except Stopped as stopped:
        say(console, "stopped")
        return stopped.exit_code
    except (EmbeddedMetastoreError, ServerError, subprocess.CalledProcessError) as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        return 1
    finally:
        children.stop()
    return 0


def serve(home: Home, console: Console, children: Children) -> None:
    """Keep Airflow and the metastore running.

    Raises:
        EmbeddedMetastoreError: the metastore can't be started, such as in a folder that is in use.
        ServerError: a server ended by itself.
    """
    say(console, "starting the metastore")
    with home.metastore() as metastore:
        os.environ.update(home.environment)
        say(console, "migrating Airflow's database")
        home.migrate()
        home.save_connections(metastore)
        say(console, "starting scheduler, triggerer, DAG processor and API server: about a minute")
        password = secrets.token_urlsafe(12)
        with AirflowServers(home, ui_port(), children, password) as servers:
            servers.wait_until_ready()
            watch(servers)
            say(console, "all components are healthy")
            shown = SHOWN.format(
                url=servers.url,
                dag=DAG_ID,
                waiting=WAITING_DAG,
                logs=home.logs,
                folder=home.folder,
                password=password,
            )
            console.print(shown, soft_wrap=True)
            while True:
                servers.check()
                time.sleep(2)


def watch(servers: AirflowServers) -> None:
    """Unpause the DAGs that follow `lance_flights`, and have the sensor of one wait."""
    for dag_id in WATCHING_DAGS:
        servers.unpause(dag_id)
    if not servers.get(f"/api/v2/dags/{WAITING_DAG}/dagRuns?state=running").get("dag_runs"):
        servers.send("POST", f"/api/v2/dags/{WAITING_DAG}/dagRuns", {"logical_date": None})


if __name__ == "__main__":
    sys.exit(main())
