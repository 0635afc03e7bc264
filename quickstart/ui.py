"""`python -m quickstart.ui`: the same DAG, connection and metastore in a running Airflow, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import time

from rich.console import Console

from quickstart.home import DAG_ID, Home
from quickstart.progress import say
from quickstart.servers import AirflowServers, ServerError


def main() -> int:
    """Start everything, print its URL, and wait."""
    console = Console()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    home = Home.chosen()
    try:
        serve(home, console)
    except KeyboardInterrupt:
        say(console, "stopped")
    except ServerError as error:
        console.print(f"[red]{error}[/]")
        return 1
    return 0


def serve(home: Home, console: Console) -> None:
    """Keep Airflow and the metastore running.

    Raises:
        ServerError: a server ended by itself.
    """
    say(console, "starting the metastore")
    with home.metastore() as metastore:
        os.environ.update(home.environment(metastore))
        say(console, "migrating Airflow's database")
        home.migrate()
        say(console, "starting scheduler, triggerer, DAG processor and API server: about a minute")
        with AirflowServers(home) as servers:
            servers.wait_until_ready()
            say(console, "all components are healthy")
            console.print(
                f"\n  [bold]{servers.url}/dags/{DAG_ID}[/]\n\n"
                "  Trigger the DAG: a run ingests the month that you enter, or the first one that is not\n"
                "  ingested yet. This also unpauses the DAG, and Airflow then catches up on all of 2013. To\n"
                "  see a sensor wait in the triggerer, trigger lance_new_flights first. The other examples\n"
                "  can be triggered too. No password is required.\n"
                f"  Logs: {home.logs}. Press Ctrl-C to stop; tables and history are kept in {home.folder}.\n",
                soft_wrap=True,
            )
            while True:
                servers.check()
                time.sleep(2)


if __name__ == "__main__":
    sys.exit(main())
