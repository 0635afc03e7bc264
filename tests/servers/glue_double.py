"""A double of AWS Glue's Data Catalog, stricter than moto, spoken to over HTTP by the real SDK.

It is not AWS: moto's responses, extended by what AWS does and moto doesn't, as documented by AWS or as
observed:

* names are lower-cased, in requests and therefore in responses;
* a table's VersionId starts at "0" and grows by one with each UpdateTable; a stale one is refused
  with ConcurrentModificationException and HTTP 400, checked and replaced under one lock;
* GetTables and GetDatabases return at most 100 items and a NextToken, and only names if
  AttributesToGet requests that;
* more than 100 names in a batch, a page above 100, names above 255 bytes, parameters whose key is
  above 255 characters or whose value is above 512,000 are refused;
* a name that BatchDeleteTable doesn't find is an error of that name alone.

Not implemented: IAM, Lake Formation and KMS (denials are injected, and every key is accepted), quotas,
rate limits (injected), eventual deletion of the contents of a database, federated catalogs, views.
UpdateTable archives versions even with SkipArchive; tests check in `requests` that it is sent. moto's S3
is served at the same address, so that a test needs only one server; conditional requests to it are served one
at a time, since moto would let two writers create one object.
"""

import base64
import io
import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
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
    """A request as AWS would see it: with lower-cased names."""

    operation: str
    body: Body
    headers: Mapping[str, str]
    """By their names as WSGI spells them."""


class StrictGlue:
    """A WSGI application that adds to moto's what it lacks."""

    def __init__(self, moto: Application, faults: Faults, requests: list[Request]) -> None:
        self._moto = moto
        self._faults = faults
        self._requests = requests
        self._lock = threading.Lock()
        self._condition = threading.Lock()

    def __call__(self, environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        service, _, operation = environ.get("HTTP_X_AMZ_TARGET", "").partition(".")
        if service != "AWSGlue":
            if {"HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH"} & environ.keys():
                with self._condition:  # moto checks a condition before it stores an object, not as one step
                    return self._moto(environ, start_response)
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
                _hang_up(environ)  # also lose refusals

    def _UpdateTable(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        named = {"DatabaseName": body["DatabaseName"], "Name": body["TableInput"]["Name"]}
        current = self._GetTable(environ, "GetTable", named)["Table"]
        if body.get("VersionId", current["VersionId"]) != current["VersionId"]:
            raise RefusedError(STALE)
        return self._forward(environ, operation, body)

    def _GetTable(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        answer = self._forward(environ, operation, body)
        return {"Table": _counted_from_zero(answer["Table"])}

    def _GetTables(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        database = _backend().databases.get(body["DatabaseName"])
        if database is None:
            return self._forward(environ, operation, body)
        # From moto's own tables: it would write all of them for each page, and there may be 100,000.
        items, more = _page(database.tables.values(), len(database.tables), body)
        return {"TableList": [_item(table, body) for table in items], **more}

    def _GetDatabases(self, environ: Environment, operation: str, body: Body) -> Body:  # noqa: N802
        databases = self._forward(environ, operation, body)["DatabaseList"]
        page, more = _page(databases, len(databases), body)
        names_only = body.get("AttributesToGet") == ["NAME"]
        return {"DatabaseList": [{"Name": one["Name"]} if names_only else one for one in page], **more}

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
            message = answer.get("message") or answer.get("Message") or ""
            raise RefusedError(Refusal(code, message, status[0]))
        return dict(answer)


class GlueDouble:
    """The double on a free loopback port; a context manager."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.requests: list[Request] = []
        self._server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)

    def __enter__(self) -> Self:
        self._server.start()
        web = self._server._server  # there is no public way to its application
        assert web is not None
        web.app = StrictGlue(web.app, self.faults, self.requests)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def endpoint(self) -> str:
        """The endpoint of Glue and S3."""
        host, port = self._server.get_host_and_port()
        return f"http://{host}:{port}"

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a namespace with this server."""
        keys = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "a-secret-of-the-tests"}
        return {"endpoint": self.endpoint, "region": REGION, **keys}

    @property
    def storage(self) -> dict[str, str]:
        """Lance's storage options for its S3."""
        keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "a-secret-of-the-tests"}
        return {"aws_endpoint": self.endpoint, "aws_region": REGION, "allow_http": "true", **keys}

    def client(self, service: str) -> Any:
        """A client of the SDK, to make changes without the namespace."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="AKIDEXAMPLE",
            aws_secret_access_key="a-secret-of-the-tests",
        )

    def add_tables(self, database: str, names: Iterable[str], location: str) -> None:
        """Add Lance tables without a request for each, as there may be 100,000."""
        for name in names:
            lance = {"Parameters": {"table_type": "lance"}, "StorageDescriptor": {"Location": location}}
            _backend().create_table(database, name, {"Name": name, **lance})

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
    sent: Mapping[str, Any] = body.get("TableInput") or body.get("DatabaseInput") or {}
    names = [body.get("DatabaseName"), body.get("Name"), sent.get("Name"), *body.get("TablesToDelete", ())]
    parameters: Mapping[str, str] = sent.get("Parameters") or {}
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
    raise ConnectionResetError  # the web server treats this as a closed connection


def _counted_from_zero(table: Body) -> Body:
    return {**table, "VersionId": str(int(table["VersionId"]) - 1)}


def _item(table: Any, body: Body) -> Body:
    if body.get("AttributesToGet") == ["NAME"]:
        return {"Name": table.name}
    catalog_table = {
        key: value.timestamp() if isinstance(value, datetime) else value
        for key, value in table.as_dict().items()
    }
    return _counted_from_zero(catalog_table)


def _page(items: Iterable[Any], count: int, body: Body) -> tuple[list[Any], Body]:
    start = int(base64.b64decode(body["NextToken"])) if "NextToken" in body else 0
    stop = start + body.get("MaxResults", LARGEST)
    more = {"NextToken": base64.b64encode(str(stop).encode()).decode()} if stop < count else {}
    return list(islice(items, start, stop)), more


def _backend() -> Any:
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.glue.models import glue_backends

    return glue_backends[DEFAULT_ACCOUNT_ID][REGION]
