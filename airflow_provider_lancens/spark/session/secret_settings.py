"""Settings of Spark that hold secrets: which they are, and that Spark's pages and event log hide them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from airflow_provider_lancens.redaction import NAMES_OF_SECRETS, is_secret, redact

REDACTION = "spark.redaction.regex"
_ITS_DEFAULT = "(?i)secret|password|token|access[.]?key"
_SETTING = re.compile(rf"\s*{re.escape(REDACTION)}(?:\s*[=:]\s*|\s+)(\S.*?)\s*")
_JVM_OPTIONS = "JavaOptions"


def shows_secret(name: str, value: str) -> bool:
    """Return whether a setting shows a secret, by its name or by a URL in its value.

    Options of a JVM have to be in its command line: only their name counts.
    """
    return is_secret(name) or (not name.endswith(_JVM_OPTIONS) and redact(value) != value)


def with_redaction(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings by which Spark hides what is secret here, and what it or the user considers secret.

    Args:
        settings: Spark's configuration; an own ``spark.redaction.regex``, there or in spark-defaults.conf, is
            extended.
    """
    known = settings.get(REDACTION) or _default_of_machine() or _ITS_DEFAULT
    return {**settings, REDACTION: f"(?:{known})|(?i:{NAMES_OF_SECRETS})"}


def _default_of_machine() -> str | None:
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and str(Path(home, "conf")))
    if not folder:
        return None
    try:
        lines = Path(folder, "spark-defaults.conf").read_text(errors="replace").splitlines()
    except OSError:
        return None
    found = [setting[1] for line in lines if (setting := _SETTING.fullmatch(line))]
    return found[-1] if found else None
