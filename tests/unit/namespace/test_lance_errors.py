"""Errors of a namespace that Lance's core shows as text become errors of the specification again."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.optimize import Compaction
from lance_namespace import LanceNamespace
from lance_namespace.errors import ConcurrentModificationError, ErrorCode, from_error_code

from airflow_provider_lancens.namespace.lance_errors import LancePanicError, namespace_error, specified_error

MESSAGE = "cannot reach the metastore: tried a, b\nof which none responded: src/x.rs"


class Failing(LanceNamespace):
    """A namespace that raises one error, whatever Lance's core asks."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def namespace_id(self) -> str:
        return "failing"

    def describe_table_version(self, request: Any) -> Any:
        raise self.error


def error_of_lance(location: Path, raised: Exception) -> Exception:
    """What Lance raises when it opens a version through a namespace that raises this."""
    lance.write_dataset(pa.table({"id": [1]}), location)
    with pytest.raises((ValueError, OSError)) as caught:
        lance.LanceDataset(
            location,
            1,
            namespace_client=Failing(raised),
            table_id=["orders"],
            namespace_client_managed_versioning=True,
        )
    return caught.value


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_each_code_is_recognized_in_what_lance_raises(tmp_path: Path, code: ErrorCode) -> None:
    raised = from_error_code(code, MESSAGE)

    recognized = namespace_error(error_of_lance(tmp_path / "orders", raised))

    assert (type(recognized), str(recognized)) == (type(raised), str(raised))


def test_a_conflict_that_lance_raises_as_an_error_of_the_storage_is_a_conflict(tmp_path: Path) -> None:
    location = str(tmp_path / "orders")
    for mode in ("create", "append"):
        lance.write_dataset(pa.table({"id": [1]}), location, mode=mode)  # type: ignore[arg-type]
    before = lance.dataset(location)
    compacted = [task.execute(before) for task in Compaction.plan(before, {}).tasks]
    lance.write_dataset(pa.table({"id": [2]}), location, mode="overwrite")

    with pytest.raises(OSError, match="Incompatible transaction") as caught:
        Compaction.commit(before, compacted)

    assert isinstance(specified_error(caught.value, location), ConcurrentModificationError)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Namespace error: Throttling: not from Lance"),
        ValueError("Namespace error: Unheard of: message"),
        ValueError("Dataset at path x was not found: Namespace error: Throttling: y"),
    ],
    ids=str,
)
def test_any_other_error_is_not_a_namespace_error(error: Exception) -> None:
    assert namespace_error(error) is None


def test_an_error_inside_a_namespace_has_no_code(tmp_path: Path) -> None:
    assert namespace_error(error_of_lance(tmp_path / "orders", RuntimeError("a bug"))) is None


def test_no_secret_is_shown() -> None:
    error = ValueError("Namespace error: Permission denied: key hunter2 was refused, src/a.rs:1:2")

    assert "hunter2" not in str(namespace_error(error, ["hunter2"]))


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (OSError("Append with different schema: missing=[], unexpected=[z]"), 20),
        (OSError("LanceError(Schema): Duplicate field"), 20),
        (ValueError("Invalid user input: no such type, /x/lance/rust/a.rs:1:2"), 13),
        (ValueError("External error: Encountered corrupt file: invalid utf-8 sequence of 1 bytes"), 19),
        (OSError("LanceError(Arrow): Invalid argument error: offset overflow"), 13),
        (OSError("Ref is invalid: Ref cannot be empty"), 13),
        (OSError('Ref conflict error: Branch b is referenced by tags [("t", 2)], can not delete'), 13),
        (OSError("Not found: Fragment 0 does not contain any data, /x/lance/rust/fragment.rs:1:2"), 19),
        (OSError("LanceError(Arrow): C Data interface error: IOError: slow"), 17),
        (ValueError("External error: LanceError(IO): Generic S3 error: timeout"), 17),
        (OSError("Encountered corrupt file: LanceError(IO): Generic S3 error: timeout"), 17),
        (LancePanicError("not implemented"), 18),
    ],
)
def test_what_no_retry_mends_is_not_taken_for_the_storage(raised: Exception, code: int) -> None:
    specified = specified_error(raised, "s3://lake/orders")

    assert specified is not None
    assert int(specified.code) == code
    assert "/x/lance/rust" not in str(specified)
