"""Runs in lance-namespace-impls' environment: opens its namespace, then makes one call per line."""

import json
import sys
import time
from typing import Any

import lance_namespace


def main(kind: str, properties: str) -> None:
    namespace = lance_namespace.connect(kind, json.loads(properties))
    for line in sys.stdin:
        call = json.loads(line)
        print(json.dumps(answer(namespace, call["operation"], call["request"])), flush=True)  # noqa: T201


def answer(namespace: Any, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    name = "".join(word.capitalize() for word in operation.split("_")) + "Request"
    asked = getattr(lance_namespace, name)(**request)
    value, error = None, None
    started = time.perf_counter()
    try:
        value = getattr(namespace, operation)(asked)
    except Exception as problem:  # noqa: BLE001 - the peer raises whatever comes
        error = f"{type(problem).__name__}: {problem}"
    seconds = time.perf_counter() - started
    return {"value": value and value.model_dump(), "error": error, "seconds": seconds}


if __name__ == "__main__":
    main(*sys.argv[1:])
