"""Whether a sensor defers if its `deferrable` isn't set."""

from __future__ import annotations

import os
from configparser import ConfigParser

from airflow.configuration import conf

_SECTION = "operators"
_OPTION = "default_deferrable"
_NOBODY_WRITES = "default_cpus"


def default_deferrable() -> bool:
    """Return the value of ``operators.default_deferrable`` if a user set it, else true.

    Airflow ships the option as false, so its value alone doesn't show whether it was set deliberately.
    """
    if f"AIRFLOW__{_SECTION}__{_OPTION}".upper() in os.environ or _chosen_in_file():
        return bool(conf.getboolean(_SECTION, _OPTION))
    return True


def _chosen_in_file() -> bool:
    # The parser's own sections contain only the file; Airflow's shipped defaults are kept elsewhere.
    if not ConfigParser.has_option(conf, _SECTION, _OPTION):
        return False
    # Airflow generates the first airflow.cfg itself, with every option at its shipped value: a false there
    # is not a user's choice, only a true is.
    written_by_airflow = ConfigParser.has_option(conf, _SECTION, _NOBODY_WRITES)
    return not written_by_airflow or bool(conf.getboolean(_SECTION, _OPTION))
