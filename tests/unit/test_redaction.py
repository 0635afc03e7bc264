"""Redaction of URLs, messages of libraries and options."""

import time
import traceback

import pytest

from airflow_provider_lancens.redaction import (
    LONGEST,
    has_credentials,
    is_secret,
    redact,
    secret_values,
    shareable_cause,
)

HUSH = "Hu5h/Secret+Key"


@pytest.mark.parametrize(
    "text",
    [
        f"s3://KEY:{HUSH}@bucket/t.lance",
        f"s3://{HUSH.replace('/', '')}@bucket/t.lance",
        f"cannot read s3://KEY:{HUSH}@bucket/t.lance: it is gone",
        f"Error performing GET http://user:{HUSH}@127.0.0.1:9000/bucket?list-type=2&prefix=t.lance%2F",
        f"thrift://hms:9083,thrift://user:{HUSH}@other:9083,thrift://third:9083",
        f"https://bucket/t?X-Amz-Algorithm=AWS4&X-Amz-Credential={HUSH}&X-Amz-Signature={HUSH}&x=1",
        f"https://account.blob.core.windows.net/c?sv=2024&sig={HUSH}&se=2026",
        f"sc://connect:15002/;token={HUSH};user_id=me",
        f"abfss://container:{HUSH}@account.dfs.core.windows.net/t",
        f"KEY:{HUSH}@bucket/t.lance",
        f"aws_secret_access_key={HUSH}, region=eu",
        f"{{'aws_secret_access_key': '{HUSH}', 'region': 'eu'}}",
        f'StorageOptions({{"account_key": Some("{HUSH}")}})',
        f"{{'account_key': 'a\\'{HUSH}'}}",
        f'{{"account_key": "{HUSH} and then it was cut',
        f"a=1;b=token={HUSH}",
    ],
)
def test_a_secret_in_a_text_is_masked(text: str) -> None:
    shown = redact(text)
    assert not any(part in shown for part in HUSH.split("/"))
    assert "***" in shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/run@2026/t.lance",
        "http://127.0.0.1:9000/bucket/a@b?list-type=2&prefix=t.lance%2F_versions%2F",
        "abfss://container@account.dfs.core.windows.net/t.lance",
        "file:/lake/run@2/t.lance",
        "/lake/run:1@2/t.lance",
        "s3+ddb://bucket/t.lance?ddbTableName=locks",
        "hive/host@REALM.EXAMPLE",
        "client.auth=plain requires the properties 'client.user' and 'client.password'",
        "table db$t: version 3 @ s3://bucket/t.lance",
        "lance://conn/db/t",
        "[::1]:9083",
    ],
)
def test_a_text_without_secrets_is_unchanged(text: str) -> None:
    assert redact(text) == text
    assert not has_credentials(text)


@pytest.mark.parametrize(
    "location",
    [f"s3://KEY:{HUSH}@b/t", "s3://token@b/t", f"https://h/t?X-Amz-Signature={HUSH}", f"KEY:{HUSH}@b/t"],
)
def test_a_location_with_credentials_is_detected(location: str) -> None:
    assert has_credentials(location)


def test_a_folder_named_like_a_parameter_is_not_a_credential() -> None:
    assert not has_credentials("s3://bucket/token=abc/t.lance")


def test_options_are_secret_unless_known_to_be_plain() -> None:
    options = {
        "aws_region": "eu-west-1",
        "endpoint": "http://127.0.0.1:9000",
        "allow_http": "true",
        "timeout": "30s",
        "secret_access_key": HUSH,
        "google_service_account_key": "{json}",
        "something_new": "whatever",
    }
    assert secret_values(options) == {HUSH, "{json}", "whatever"}
    assert redact(f'failed to parse "{HUSH}" as Duration', [HUSH]) == 'failed to parse "***" as Duration'


@pytest.mark.parametrize(
    "name",
    [
        "aws_secret_access_key",
        "account_key",
        "sasToken",
        "client.password",
        "sig",
        "master_key",
        "azure_storage_master_key",
        "aws_sse_customer_key_base64",
        "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.container.lake.blob.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.executorEnv.AZURE_STORAGE_KEY",
        "spark.ssl.keyPassword",
        "encryption_key",
        "a token with blanks",
    ],
)
def test_a_secret_is_recognized_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "region",
        "design",
        "partition",
        "version",
        "compaction.threshold",
        "spark.io.encryption.keySizeBits",
        "spark.hadoop.hive.security.authorization.manager",
        "sse_kms_key_id",
    ],
)
def test_other_names_are_not_secret(name: str) -> None:
    assert not is_secret(name)


def test_a_cause_is_chained_only_if_it_shows_no_secret() -> None:
    clean, tainted = OSError("disk on fire"), OSError(f"s3://KEY:{HUSH}@bucket is gone")
    assert shareable_cause(clean) is clean
    assert shareable_cause(tainted) is None
    outer = ValueError("cannot read")
    outer.__context__ = tainted
    assert shareable_cause(outer) is None
    outer.__suppress_context__ = True
    assert shareable_cause(outer) is outer


def test_a_circular_chain_of_causes_ends() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert shareable_cause(one) is one
    assert "one" in "".join(traceback.format_exception(one))


_SHAPES = (
    "a",
    "a.",
    "a:",
    "a:b",
    "a://",
    "token",
    "'token",
    "'token':'",
    "'token':\"",
    "@",
    "a@",
    "a:b@",
    " a:b",
    "-",
    "+",
    "secret=",
    "'token' : ",
    "s3://b/t ",
    "a://x:y@b ",
    "'",
    "'token'=",
    "s3://h?;",
    "'token':'\\",
    "-a:b-",
    "a@b://",
    "=",
    "a=",
    "token=***",
    "[",
    "://",
    "Some(",
)


@pytest.mark.parametrize("shape", _SHAPES)
def test_redaction_takes_time_in_proportion_to_the_text(shape: str) -> None:
    """A tenant chooses names, properties and locations; quadratic time took seconds for some kilobytes."""
    seconds = {
        size: min(_seconds(shape * (size // len(shape))) for _ in range(3)) for size in (3_000, 60_000)
    }
    assert seconds[60_000] < 0.5
    assert seconds[60_000] < 100 * max(seconds[3_000], 0.0005)


def _seconds(text: str) -> float:
    started = time.process_time()
    error = OSError(text)
    shareable_cause(error)
    has_credentials(text)
    redact(text)
    return time.process_time() - started


@pytest.mark.parametrize("separator", [" ", "", "\n", "'"])
def test_of_a_long_text_the_beginning_is_shown_without_a_part_of_a_secret(separator: str) -> None:
    for filler in range(LONGEST - 40, LONGEST + 40):
        text = f"{'x ' * (filler // 2)}{separator}s3://KEY:{HUSH}@bucket {'y' * 100}"
        shown = redact(text)
        assert len(shown) < LONGEST + 100
        assert not any(part in shown for part in ("KEY", *HUSH.split("/")))
    assert redact("x" * 1_000_000) == "… (1000000 characters)"
    assert redact("x" * LONGEST) == "x" * LONGEST
