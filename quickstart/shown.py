"""Which examples the quickstart's Airflow shows: those that can run in it.

Airflow asks this of each file of its DAGs' folder, by its option `core.might_contain_dag_callable`.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

ELSEWHERE = ("glue_assumed_role.py", "lake_in_a_folder.py")
"""Examples whose connections the quickstart hasn't: of AWS, and of a folder without a metastore."""
PLUGINS = "plugins"
"""The folder of an example's Airflow plugin, which has no DAGs."""


def can_run_here(file_path: str, zip_file: ZipFile | None = None) -> bool:
    """Return whether a file contains a DAG, by Airflow's own heuristic, that the quickstart can run.

    Args:
        file_path: the file.
        zip_file: the archive that contains it.
    """
    from airflow.utils.file import might_contain_dag_via_default_heuristic

    file = Path(file_path)
    if file.name in ELSEWHERE or file.parent.name == PLUGINS:
        return False
    return might_contain_dag_via_default_heuristic(file_path, zip_file)
