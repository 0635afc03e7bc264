"""Credentials that only a profile of AWS has sign this package's requests, as they sign Lance's."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.storage import aws_credentials
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from tests.conformance.codes import refused_with
from tests.servers.s3_credentials import TemporaryCredentials
from tests.servers.s3_double import S3Double

LOCATION = "s3://lake/t.lance"
NOT_WAITING = 10.0
"""Seconds; the library asks 169.254.169.254 for longer."""


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        double.credentials = TemporaryCredentials(3600)
        yield double


@pytest.fixture
def profiles(s3: S3Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert s3.credentials
    keys = s3.credentials.issue()
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    (tmp_path / "credentials").write_text("[lake]\n" + "".join(f"{name}={keys[name]}\n" for name in names))
    (tmp_path / "config").write_text(
        "[profile lake]\nregion=eu-west-1\n"
        "[profile process]\n"
        f"credential_process=cat {tmp_path / 'process.json'}\n"
        "[profile failing]\ncredential_process=false\n"
        "[profile empty]\nregion=eu-west-1\n"
    )
    (tmp_path / "process.json").write_text(
        json.dumps(
            {
                "Version": 1,
                "AccessKeyId": keys["aws_access_key_id"],
                "SecretAccessKey": keys["aws_secret_access_key"],
                "SessionToken": keys["aws_session_token"],
            }
        )
    )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path


@pytest.mark.parametrize("profile", ["lake", "process"])
def test_a_profile_signs(s3: S3Double, profiles: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    monkeypatch.setenv("AWS_PROFILE", profile)
    files = TableFiles(LOCATION, s3.endpoint)

    files.put("a", b"content")

    assert files.read("a") == b"content"


@pytest.mark.parametrize(
    ("profile", "code", "said"),
    [
        ("empty", ErrorCode.UNAUTHENTICATED, "has no credentials"),
        ("failing", ErrorCode.UNAUTHENTICATED, "could not be read"),
        ("missing", ErrorCode.INVALID_INPUT, "expected a profile that is configured in"),
    ],
)
def test_a_profile_that_cannot_sign_is_refused_without_waiting(
    s3: S3Double, profiles: Path, monkeypatch: pytest.MonkeyPatch, profile: str, code: ErrorCode, said: str
) -> None:
    monkeypatch.setenv("AWS_PROFILE", profile)
    started = time.monotonic()

    with refused_with(code, f"AWS_PROFILE='{profile}'", said):
        TableFiles(LOCATION, s3.endpoint).put("a", b"")
    assert time.monotonic() - started < NOT_WAITING


def test_keys_of_the_connection_precede_a_profile(
    s3: S3Double, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert s3.credentials

    TableFiles(LOCATION, {**s3.endpoint, **s3.credentials.issue()}).put("a", b"")


@pytest.mark.parametrize(
    "variable", ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"]
)
def test_what_the_library_reads_itself_is_left_to_it(
    profiles: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "lake")
    monkeypatch.setenv(variable, "value")

    assert aws_credentials.credential_provider({}) is None


def test_without_profiles_boto3_is_not_asked(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("credentials", "config"):
        (profiles / name).unlink()
    monkeypatch.delenv("AWS_PROFILE", raising=False)

    assert aws_credentials.credential_provider({}) is None
