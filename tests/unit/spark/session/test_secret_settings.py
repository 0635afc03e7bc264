"""Which settings are kept out of command lines, and which Spark is told to hide."""

import re
from pathlib import Path

import pytest

from airflow_provider_lancens.spark.session import REDACTION, shows_secret, with_redaction
from airflow_provider_lancens.spark.submit import Job, submitted

SECRETS = [
    "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.container.lake.blob.core.windows.net",
    "spark.hadoop.fs.gs.auth.service.account.private.key",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.executorEnv.AZURE_STORAGE_KEY",
]


def hides(pattern: str, name: str) -> bool:
    # Java allows flags inside a pattern, where they are valid up to the end of the group.
    return re.search(re.sub(r"\(\?:\(\?i\)", "(?i:", pattern), name) is not None


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_setting_is_in_no_command_line_and_hidden_by_spark(name: str) -> None:
    assert shows_secret(name, "hush")
    assert hides(with_redaction({})[REDACTION], name)
    job = Job("impl", {}, "db$t", "jobs:rows")
    with pytest.raises(ValueError, match=f"{re.escape(name)}: would be visible in the command line"):
        submitted(job, {"spark.master": "yarn", name: "hush"}).__enter__()


def test_a_url_with_a_password_is_in_no_command_line() -> None:
    name, value = "spark.jars.repositories", "https://user:hush@host/maven"
    assert shows_secret(name, value)
    with pytest.raises(ValueError, match=f"{name}: would be visible") as refusal:
        submitted(Job("impl", {}, "db$t", "jobs:rows"), {name: value}).__enter__()
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("name", ["spark.app.name", "spark.sql.shuffle.partitions", "spark.master"])
def test_other_settings_are_passed_and_shown(name: str) -> None:
    assert not shows_secret(name, "200")
    assert not hides(with_redaction({})[REDACTION], name)


def test_a_rule_of_the_user_is_extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.a b\n # {REDACTION} no\n{REDACTION}   color|shape  \n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for given, hidden in (({}, "spark.shape"), ({REDACTION: "(?i)SIZE"}, "spark.size")):
        extended = with_redaction(given)[REDACTION]
        assert hides(extended, hidden)
        assert not hides(extended, "spark.other")
        assert all(hides(extended, name) for name in SECRETS)
