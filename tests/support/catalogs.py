"""Connections of type ``lance``, to a folder and to a REST service over it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lance.namespace import RestAdapter

KINDS = ("dir", "rest")
TOKEN = "hush-hush"  # the service accepts any


@contextmanager
def catalog_connection(kind: str, connect: Callable[..., str], root: Path) -> Iterator[str]:
    """Define a connection of one of the kinds, and yield its id."""
    if kind == "dir":
        yield connect(conn_type="lance", extra={"root": str(root)})
        return
    with RestAdapter("dir", {"root": str(root)}, port=0) as service:
        yield connect(
            conn_type="lance",
            host=f"http://127.0.0.1:{service.port}/",
            password=TOKEN,
            extra={"impl": "rest"},
        )
