"""What a Spark Connect server can make the installed PySpark do by its answers, as docs/security.md says."""

import base64
import contextlib
import pickle
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyspark
import pytest
from packaging.version import Version

grpc = pytest.importorskip("grpc")
pytest.importorskip("pyspark.sql.connect.proto")

from pyspark.sql.connect import proto  # noqa: E402
from pyspark.sql.connect.client import SparkConnectClient  # noqa: E402
from pyspark.sql.connect.proto import base_pb2_grpc  # noqa: E402

PAGE = Path(__file__).parents[4] / "docs/security.md"
CODE_RAN = Path("code-ran")


class RunsCode:
    """Creates a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return Path.touch, (CODE_RAN,)


def accumulator() -> proto.ExecutePlanResponse:
    response = proto.ExecutePlanResponse()
    metrics = response.observed_metrics.add(name="__python_accumulator__")
    metrics.values.add(binary=pickle.dumps((1, RunsCode())))
    return response


def pickled_type() -> proto.ExecutePlanResponse:
    code = base64.b64encode(pickle.dumps(RunsCode())).decode()
    return type_of(python_class="__main__.Missing", serialized_python_class=code)


def named_type() -> proto.ExecutePlanResponse:
    """A type whose class is a function that needs no arguments."""
    return type_of(python_class=f"{__name__}.touch")


def touch() -> None:
    CODE_RAN.touch()


def type_of(python_class: str, serialized_python_class: str | None = None) -> proto.ExecutePlanResponse:
    response = proto.ExecutePlanResponse()
    field = response.schema.struct.fields.add(name="a", nullable=True)
    field.data_type.udt.CopyFrom(
        proto.DataType.UDT(
            type="udt", python_class=python_class, serialized_python_class=serialized_python_class
        )
    )
    return response


class Server(base_pb2_grpc.SparkConnectServiceServicer):
    """Sends one answer to whatever is executed."""

    def __init__(self, answer: proto.ExecutePlanResponse) -> None:
        self.answer = answer

    def ExecutePlan(self, request: Any, context: Any) -> Iterator[proto.ExecutePlanResponse]:  # noqa: N802
        self.answer.session_id = request.session_id
        self.answer.operation_id = request.operation_id
        yield self.answer
        yield proto.ExecutePlanResponse(
            session_id=request.session_id,
            operation_id=request.operation_id,
            result_complete=proto.ExecutePlanResponse.ResultComplete(),
        )

    def ReleaseExecute(self, request: Any, context: Any) -> proto.ReleaseExecuteResponse:  # noqa: N802
        return proto.ReleaseExecuteResponse(session_id=request.session_id)


def execute(answer: proto.ExecutePlanResponse) -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    base_pb2_grpc.add_SparkConnectServiceServicer_to_server(Server(answer), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    client = SparkConnectClient(f"sc://127.0.0.1:{port}")
    with contextlib.suppress(Exception):  # what an answer is refused with differs by version
        client.execute_command(proto.Command())
    client.close()
    server.stop(0)


def first_versions(page: str) -> list[Version]:
    """Return the versions from which on a server can't run code, as documented."""
    [listed] = re.findall(r"use PySpark ([\d., ]+ or [\d.]+\d)", page)
    return [Version(version) for version in re.findall(r"[\d.]+\d", listed)]


def test_a_server_runs_no_code_with_the_versions_of_pyspark_that_are_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    installed = Version(pyspark.__version__)
    first = first_versions(PAGE.read_text())
    same_minor = [version for version in first if version.release[:2] == installed.release[:2]]
    is_documented = installed >= (same_minor or [max(first)])[0]

    ran: list[str] = []
    answers: list[Callable[[], proto.ExecutePlanResponse]] = [accumulator, pickled_type, named_type]
    for answer in answers:
        execute(answer())
        if CODE_RAN.exists():
            ran.append(answer.__name__)
            CODE_RAN.unlink()
    assert (ran == []) == is_documented, ran
