"""Errors of storages as the specification's errors: with a code and what to do, and without secrets."""

import errno
import traceback
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.namespace.storage.object_store import latest_version, open_store, storage_errors
from airflow_provider_lancens.namespace.storage.storage_errors import is_storage_error, storage_error
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from tests.conformance.codes import refused_with

HUSH = "hu5h-hu5h"
PLACE = "s3://bucket/t.lance"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 17, "is full"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 17, "raise its quota"),
        (
            OSError("LanceError(IO): No space left on device (os error 28), /rust/writer.rs:1:2"),
            17,
            "is full",
        ),
        (OSError(errno.EROFS, "Read-only file system"), 15, "is read-only"),
        (
            OSError('LanceError(IO): Read-only file system (os error 30) at path "/t.lance/.tmp1"'),
            15,
            "is read-only",
        ),
        (PermissionError(errno.EACCES, "Permission denied"), 15, "access denied"),
        (
            OSError("LanceError(IO): The operation lacked the necessary privileges to complete"),
            15,
            "storage.*",
        ),
        (OSError("LanceError(IO): The operation lacked valid authentication credentials"), 16, "storage.*"),
        (OSError("LanceError(IO): connection reset"), 17, "returned an unexpected response"),
    ],
)
def test_a_failure_has_its_code_and_says_what_to_do(error: OSError, code: int, message: str) -> None:
    converted = storage_error(error, PLACE)
    assert converted.code == code
    assert PLACE in str(converted)
    assert message in str(converted)
    assert ".rs:" not in str(converted)


def test_a_value_error_of_lance_counts_as_a_storage_error() -> None:
    assert is_storage_error(ValueError("LanceError(IO): Generic S3 error: Error performing GET"))
    assert not is_storage_error(ValueError("Dataset at path t.lance was not found"))


def opened(options: dict[str, str], location: str = PLACE) -> object:
    return open_store(
        location, {"region": "us-east-1", "access_key_id": "key", "secret_access_key": HUSH, **options}
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"allow_http": HUSH}, "storage.allow_http"),
        ({"aws_allow_http": HUSH}, "storage.aws_allow_http"),
        ({"timeout": HUSH}, "storage.timeout"),
        ({"virtual_hosted_style_request": HUSH}, "storage.virtual_hosted_style_request"),
    ],
)
def test_an_invalid_option_is_named_and_its_value_not_shown(options: dict[str, str], named: str) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, named, "expected: "), not_shown():
        opened(options)


@pytest.mark.parametrize(
    "location", [f"hdfs://u:{HUSH}@nn/t", f"s3://u:{HUSH}@:x/t", "oss://bucket/t", "s3://"]
)
def test_a_location_of_an_unknown_store_is_refused(location: str) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "location: expected an absolute path or URL"), not_shown():
        opened({}, location)


@pytest.mark.parametrize("option", ["http1_only", "aws_allow_http", "aws_proxy_url", "pool_idle_timeout"])
def test_http_client_options_are_accepted_with_and_without_the_stores_prefix(option: str) -> None:
    values = {"aws_proxy_url": "http://proxy:3128", "pool_idle_timeout": "5s"}
    assert opened({option: values.get(option, "true")}) is not None


def test_an_unreachable_store_shows_no_password_of_its_endpoint_or_proxy() -> None:
    options = {
        "access_key_id": "key",
        "secret_access_key": HUSH,
        "region": "us-east-1",
        "endpoint": f"http://user:{HUSH}@127.0.0.1:1",
        "proxy_url": f"http://user:{HUSH}@127.0.0.1:1",
        "allow_http": "true",
    }
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, PLACE), not_shown():
        latest_version(PLACE, options)


def test_a_file_at_a_folders_path_is_an_error_of_the_specification(tmp_path: Path) -> None:
    (tmp_path / "_lancens").write_text("no folder")
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, str(tmp_path)):
        TableFiles(str(tmp_path), {}).put("_lancens/writes/1", b"")


def test_exceptions_handled_by_the_caller_are_not_converted() -> None:
    with pytest.raises(FileNotFoundError), storage_errors(PLACE, passing=(FileNotFoundError,)):
        raise FileNotFoundError("t")


class not_shown:  # noqa: N801 - reads as a block
    """Check that no error in the chain of the block's error shows the secret."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        assert isinstance(error, LanceNamespaceError)
        assert HUSH not in "".join(traceback.format_exception(error))
