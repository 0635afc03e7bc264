"""Makes the pictures of the Lance page: twelve months of flights in a running Airflow, seen in Chromium.

`python docs/lance_page_pictures.py FOLDER` keeps the tables and Airflow's database in FOLDER, and continues
there; the first time takes a quarter of an hour. Needs Chromium, as the browser's tests do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from quickstart.home import Home
from quickstart.servers import AirflowServers
from quickstart.ui import WAITING_DAG, watch

TREE = Path(__file__).parents[1]
IMAGES = TREE / "docs" / "images"
STARTS = 6
"""Of the quickstart, each of which ingests two months."""
TABLE = "lance/?conn=lance_flights&table=nyc$flights"
WAITS = f"/api/v2/dags/{WAITING_DAG}/dagRuns/~/taskInstances?state=deferred"
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 420, "height": 860}
THEMES = ("light", "dark")


def main(folder: Path) -> None:
    """Ingest the months that are missing, start Airflow, and take the pictures."""
    os.environ["LANCENS_HOME"] = str(folder)
    for _ in range(STARTS):
        subprocess.run([sys.executable, "-m", "quickstart"], cwd=TREE, check=True)
    home = Home.chosen()
    with home.metastore() as metastore:
        os.environ.update(home.environment)
        home.save_connections(metastore)
        with AirflowServers(home) as servers:
            servers.wait_until_ready()
            watch(servers)
            while not servers.get(WAITS).get("task_instances"):
                time.sleep(1)
            take_pictures(servers.url)


def take_pictures(url: str) -> None:
    """Take each picture in both color modes."""
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        options = ["--no-sandbox", "--no-proxy-server", "--force-device-scale-factor=1"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        for theme in THEMES:
            for size, name in ((WIDE, "wide"), (NARROW, "narrow")):
                context = browser.new_context(viewport=size, locale="en-US", timezone_id="UTC")
                context.add_init_script(f"localStorage.setItem('theme', '{theme}')")
                page = context.new_page()
                page.goto(f"{url}/auth/token/login")
                picture_table(page, url, f"lance-page-{name}-{theme}")
                if size is WIDE:
                    picture_airflow(page, url, theme)
                context.close()
        browser.close()


def picture_table(page: Page, url: str, name: str) -> None:
    """Show the versions of the table of flights."""
    page.goto(f"{url}/{TABLE}")
    page.get_by_role("slider", name="Versions").wait_for()
    shoot(page, name)


def picture_airflow(page: Page, url: str, theme: str) -> None:
    """Show who waits for the table, and the page inside Airflow."""
    page.get_by_role("tab", name="Waiting").click()
    page.get_by_role("region", name="Waiting for this table").wait_for()
    shoot(page, f"lance-page-waiting-{theme}")
    page.goto(f"{url}/plugin/lance")
    frame: Any = page.frame_locator("iframe")
    for level in ("lance_flights", "nyc"):
        frame.get_by_role("link", name=level, exact=True).click()
    frame.get_by_role("region", name="Tables in nyc").wait_for()
    shoot(page, f"lance-page-in-airflow-{theme}")


def shoot(page: Page, name: str) -> None:
    """Save what the window shows."""
    page.mouse.move(0, 0)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
