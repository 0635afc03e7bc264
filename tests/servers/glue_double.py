"""A double of AWS Glue's Data Catalog, stricter than moto, spoken to over HTTP by the real SDK.

It is not AWS. moto's own responses stand behind it; in front of them stands what AWS does and moto
doesn't, each as AWS documents it or as it was seen to answer:

* names are lower-cased, in requests and so in answers;
* an entry's VersionId begins with "0" and grows by one with each UpdateTable; a stale one is refused
  with ConcurrentModificationException and HTTP 400, checked and replaced under one lock;
* GetTables and GetDatabases answer at most 100 entries and a NextToken, and names alone where
  AttributesToGet asks for them;
* more than 100 names in a batch, a page above 100, names above 255 bytes, parameters whose key is
  above 255 characters or whose value is above 512,000 are refused;
* a name that BatchDeleteTable doesn't find is an error of that name alone.

What AWS does and neither of them does: IAM, Lake Formation and KMS (denials are injected, and every
key is accepted), quotas, rate limits (injected), eventual deletion of what lay in a database, federated
catalogs, views. UpdateTable keeps archived versions whether SkipArchive is sent or not; that it is sent,
a test sees in `requests`. moto's S3 answers at the same address, so that a test needs one server only.
"""

import base64
import io
import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from tests.servers.glue_faults import JSON, Faults, Lost, Refusal

LARGEST = 100
LONGEST_NAME, LONGEST_KEY, LONGEST_VALUE = 255, 255, 512_000
REGION = "us-east-1"
STALE = Refusal("ConcurrentModificationException", "Update table failed due to concurrent modifications.")

Environment = dict[str, Any]
Application = Callable[[Environment, Callable[..., Any]], Iterable[bytes]]
Body = dict[str, Any]


class RefusedError(Exception):
    """The service refuses the request."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


@dataclass(frozen=True)
class Request:
    """What came in, as AWS would see it: with its names lower-cased."""

    operation: str
    body: Body
    headers: Mapping[str, str]
    """By their names as WSGI spells them."""


class StrictGlue:
    """A WSGI application in front of moto's that adds what moto leaves out."""

    def __init__(self, moto: Application, faults: Faults, requests: list[Request]) -> None:
        self._moto = moto
        self._faults = faults
        self._requests = requests
        self._lock = threading.Lock()

    def __call__(self, environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        service, _, operation = environ.get("HTTP_X_AMZ_TARGET", "").partition(".")
        if service != "AWSGlue":
            return self._moto(environ, start_response)
        body = _lower_cased(json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))))
        headers = {key.removeprefix("HTTP_"): environ[key] for key in environ if key.startswith("HTTP_")}
        self._requests.append(Request(operation, body, headers))
        try:
            answer = self._answer(environ, operation, body)
        except RefusedError as error:
            start_response(f"{error.refusal.status} Refused", [("Content-Type", JSON)])
            return [error.refusal.body]
        start_response("200 OK", [("Content-Type", JSON)])
        return [json.dumps(answer).encode()]

    def _answer(self, environ: Environment, operation: str, body: Body) -> Body:
        fault = self._faults.next_of(operation)
        if isinstance(fault, Refusal):
            raise RefusedError(fault)
        if isinstance(fault, Lost) and not fault.effective:
            _hang_up(environ)
        _check_limits(body)
        try:
            with self._lock:
                answer: Body = getattr(self, f"_{operation}", self._forward)(environ, operation, body)
                return answer
        finally:
            if isinstance(fault, Lost):
                _hang_up(environ)  # a refusal is lost as well

    def _UpdateTable(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        place = {"DatabaseName": body["DatabaseName"], "Name": body["TableInput"]["Name"]}
        current = self._GetTable(environ, "GetTable", place)["Table"]
        if body.get("VersionId", current["VersionId"]) != current["VersionId"]:
            raise RefusedError(STALE)
        return self._forward(environ, operation, body)

    def _GetTable(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        answer = self._forward(environ, operation, body)
        return {"Table": _counted_from_zero(answer["Table"])}

    def _GetTables(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        answer = self._forward(environ, operation, body)
        return _page([_counted_from_zero(table) for table in answer["TableList"]], "TableList", body)

    def _GetDatabases(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        return _page(self._forward(environ, operation, body)["DatabaseList"], "DatabaseList", body)

    def _BatchDeleteTable(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        errors = self._faults.errors_of(body["TablesToDelete"])
        kept = {error["TableName"] for error in errors}
        names = [name for name in body["TablesToDelete"] if name not in kept]
        answer = self._forward(environ, operation, {**body, "TablesToDelete": names})
        errors += answer.get("Errors", [])
        return {"Errors": errors} if errors else {}

    def _forward(self, environ: Environment, operation: str, body: Body) -> Body:
        sent = json.dumps(body).encode()
        inner = {**environ, "HTTP_X_AMZ_TARGET": f"AWSGlue.{operation}", "CONTENT_LENGTH": str(len(sent))}
        inner["wsgi.input"] = io.BytesIO(sent)
        status: list[int] = []

        def start(line: str, *_: Any) -> None:
            status.append(int(line.split()[0]))

        answer = json.loads(b"".join(self._moto(inner, start)) or b"{}")
        if status[0] != 200:
            code = answer.get("__type", "InternalFailure").rpartition("#")[2]
            words = answer.get("message") or answer.get("Message") or ""
            raise RefusedError(Refusal(code, words, status[0]))
        return dict(answer)


class GlueDouble:
    """The double at a free loopback port: a context manager."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.requests: list[Request] = []
        self._server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)

    def __enter__(self) -> Self:
        self._server.start()
        web = self._server._server  # it names no other way to its application
        assert web is not None
        web.app = StrictGlue(web.app, self.faults, self.requests)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def endpoint(self) -> str:
        """Where Glue and S3 answer."""
        host, port = self._server.get_host_and_port()
        return f"http://{host}:{port}"

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a namespace over it."""
        keys = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "a-secret-of-the-tests"}
        return {"endpoint": self.endpoint, "region": REGION, **keys}

    @property
    def storage(self) -> dict[str, str]:
        """The storage options of Lance for its S3."""
        keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "a-secret-of-the-tests"}
        return {"aws_endpoint": self.endpoint, "aws_region": REGION, "allow_http": "true", **keys}

    def client(self, service: str) -> Any:
        """The SDK's own client, for what a test does behind the namespace's back."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="AKIDEXAMPLE",
            aws_secret_access_key="a-secret-of-the-tests",
        )

    def sent(self, operation: str, database: str) -> list[Body]:
        """The requests of an operation on a database, in order."""
        return [
            request.body
            for request in self.requests
            if request.operation == operation and request.body.get("DatabaseName") == database
        ]


def _lower_cased(body: Body) -> Body:
    names = {key: body[key].lower() for key in ("DatabaseName", "Name") if isinstance(body.get(key), str)}
    if "TablesToDelete" in body:
        names["TablesToDelete"] = [name.lower() for name in body["TablesToDelete"]]
    for key in ("TableInput", "DatabaseInput"):
        if key in body:
            names[key] = {**body[key], "Name": body[key]["Name"].lower()}
    return {**body, **names}


def _check_limits(body: Body) -> None:
    entry: Mapping[str, Any] = body.get("TableInput") or body.get("DatabaseInput") or {}
    names = [body.get("DatabaseName"), body.get("Name"), entry.get("Name"), *body.get("TablesToDelete", ())]
    parameters: Mapping[str, str] = entry.get("Parameters") or {}
    fine = (
        body.get("MaxResults", 1) <= LARGEST
        and len(body.get("TablesToDelete", ())) <= LARGEST
        and all(len(name.encode()) <= LONGEST_NAME for name in names if name)
        and all(len(k) <= LONGEST_KEY and len(v) <= LONGEST_VALUE for k, v in parameters.items())
    )
    if not fine:
        message = "1 validation error detected: a value failed to satisfy constraint: Member must have length"
        raise RefusedError(Refusal("ValidationException", message))


def _hang_up(environ: Environment) -> NoReturn:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError  # what the web server takes for a client that has gone


def _counted_from_zero(table: Body) -> Body:
    return {**table, "VersionId": str(int(table["VersionId"]) - 1)}


def _page(entries: list[Body], key: str, body: Body) -> Body:
    start = int(base64.b64decode(body["NextToken"])) if "NextToken" in body else 0
    stop = start + body.get("MaxResults", LARGEST)
    page = entries[start:stop]
    if body.get("AttributesToGet") == ["NAME"]:
        page = [{"Name": entry["Name"]} for entry in page]
    more = {"NextToken": base64.b64encode(str(stop).encode()).decode()} if stop < len(entries) else {}
    return {key: page, **more}
