"""A double of those routes of the Kubernetes API that spark-submit uses for a driver's pod.

No container runs: a test sets the pod's phase.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Pod = dict[str, Any]


class Kubernetes:
    """The pods of one namespace, and the clients that watch them."""

    def __init__(self, namespace: str) -> None:
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.pods: dict[str, Pod] = {}
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.kubernetes = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def master(self) -> str:
        """The master URL for Spark."""
        return f"k8s://http://127.0.0.1:{self._server.server_port}"

    def put(self, pod: Pod, phase: str) -> Pod:
        """Create a pod, or change its phase."""
        with self._changed:
            version = str(int(pod["metadata"].get("resourceVersion", 0)) + 1)
            metadata = {**pod["metadata"], "uid": "1", "resourceVersion": version}
            pod = {**pod, "metadata": metadata, "status": {"phase": phase}}
            self.pods[metadata["name"]] = pod
            self._changed.notify_all()
        return pod

    def delete(self, name: str) -> Pod | None:
        with self._changed:
            self._changed.notify_all()
            return self.pods.pop(name, None)

    def wait_for_pod(self) -> Pod:
        """The only pod, once it exists."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.pods, timeout=120)
            [pod] = self.pods.values()
            return pod

    def next_state(self, name: str, seen: Pod | None) -> Pod | None:
        """The pod, as soon as it differs from that one; None if it was deleted."""
        with self._changed:
            self._changed.wait_for(lambda: self.pods.get(name) != seen)
            return self.pods.get(name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.pods):
            self.delete(name)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def is_driver(pod: Pod) -> bool:
    """Whether spark-submit has labeled a pod as a driver's; it lists only these."""
    return bool(pod["metadata"].get("labels", {}).get("spark-role") == "driver")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _kubernetes(self) -> Kubernetes:
        found: Kubernetes = self.server.kubernetes  # type: ignore[attr-defined]
        return found

    def do_POST(self) -> None:
        self._answer(201, self._kubernetes.put(self._body(), "Pending"))

    def do_PATCH(self) -> None:
        """The driver's service and configuration, which aren't needed."""
        self._answer(200, self._body())

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == self._kubernetes.path and "watch=true" not in query:
            drivers = [pod for pod in list(self._kubernetes.pods.values()) if is_driver(pod)]
            self._answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": drivers})
        elif "watch=true" not in query:
            self._answer_pod(self._kubernetes.pods.get(path.rpartition("/")[2]))
        elif self.headers.get("Upgrade"):
            self._answer(200, {})  # no WebSocket support: the client retries by plain HTTP
        else:
            self._watch(query.partition("metadata.name%3D")[2].partition("&")[0])

    def do_DELETE(self) -> None:
        self._body()
        self._answer_pod(self._kubernetes.delete(self.path.partition("?")[0].rpartition("/")[2]))

    def _watch(self, name: str) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen: Pod | None = None
        while pod := self._kubernetes.next_state(name, seen):
            self._tell("MODIFIED", pod)
            seen = pod
        self._tell("DELETED", seen or {})

    def _tell(self, kind: str, pod: Pod) -> None:
        event = json.dumps({"type": kind, "object": pod}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer_pod(self, pod: Pod | None) -> None:
        missing = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "NotFound",
            "code": 404,
        }
        self._answer(200 if pod else 404, pod or missing)

    def _answer(self, code: int, body: object) -> None:
        sent = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
