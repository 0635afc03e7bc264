"""Whether sensors defer where a DAG doesn't say: as Airflow was told, and yes where it was told nothing."""

from __future__ import annotations

import os
from configparser import ConfigParser

from airflow.providers.common.compat.sdk import conf

_SECTION = "operators"
_OPTION = "default_deferrable"
_NOBODY_WRITES = "default_cpus"


def default_deferrable() -> bool:
    """What ``operators.default_deferrable`` says where somebody set it, else true.

    Airflow ships the option as false, so its value alone doesn't tell whether anybody meant it.
    """
    if f"AIRFLOW__{_SECTION}__{_OPTION}".upper() in os.environ or _chosen_in_file():
        return bool(conf.getboolean(_SECTION, _OPTION))
    return True


def _chosen_in_file() -> bool:
    # The parser's own table holds the file alone; what Airflow ships lies elsewhere.
    if not ConfigParser.has_option(conf, _SECTION, _OPTION):
        return False
    # Airflow writes its first airflow.cfg itself, every option at its shipped value: a false there
    # is nobody's choice, and only a true is somebody's.
    written_by_airflow = ConfigParser.has_option(conf, _SECTION, _NOBODY_WRITES)
    return not written_by_airflow or bool(conf.getboolean(_SECTION, _OPTION))
