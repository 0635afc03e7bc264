"""The documented tree of errors: every class, its base, its code, and whether tasks retry it."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lance_namespace import errors as specification
from lance_namespace.errors import LanceNamespaceError

import airflow_provider_lancens
from airflow_provider_lancens.hooks import airflow_errors
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException

PACKAGE = Path(airflow_provider_lancens.__file__).parent
LINE = re.compile(r"^(?P<branch>[│├└─ ]*)(?P<name>\w+)\s*(?P<code>\d+)?\s*(?P<fate>fails|retried|ends)?")
INDENT = 4


@dataclass(frozen=True)
class TreeLine:
    """A line of the tree."""

    name: str
    base: str | None
    code: int | None
    fate: str | None


def drawn() -> Iterator[TreeLine]:
    assert airflow_errors.__doc__
    _, _, rest = airflow_errors.__doc__.partition("in a task\n    Exception")
    path: list[str] = []
    for text in ["    Exception", *rest.split("\n\n")[0].splitlines()[1:]]:
        match = LINE.match(text[INDENT:])
        assert match, text
        depth = len(match["branch"]) // INDENT
        path[depth:] = [match["name"]]
        code = int(match["code"]) if match["code"] else None
        yield TreeLine(match["name"], path[depth - 1] if depth else None, code, match["fate"])


TREE = {line.name: line for line in drawn()}


def exception_classes() -> Iterator[type[BaseException]]:
    """The classes of the specification, and those of the package but private ones, which never leave it."""
    yield from (one for one in vars(specification).values() if inspect.isclass(one) and is_exception(one))
    for file in PACKAGE.rglob("*.py"):
        classes = (node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef))
        names = [node.name for node in classes if not node.name.startswith("_")]
        if not any(name.endswith(("Error", "Exception", "Killed")) for name in names):
            continue
        module = importlib.import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
        yield from (getattr(module, name) for name in names if is_exception(getattr(module, name)))


def is_exception(kind: type) -> bool:
    return issubclass(kind, BaseException)


CLASSES = {kind.__name__: kind for kind in exception_classes()}


def test_every_exception_class_is_in_the_tree_below_its_base() -> None:
    assert {name: TREE[name].base if name in TREE else "missing" for name in CLASSES} == {
        name: kind.__bases__[0].__name__ for name, kind in CLASSES.items()
    }


def test_every_exception_of_the_package_is_named_error() -> None:
    bases = re.compile(r"^class ([^\W_]\w*)\(.*(?:Error|Exception)\b.*\):", re.MULTILINE)
    found = {name for file in PACKAGE.rglob("*.py") for name in bases.findall(file.read_text())}
    assert found <= set(CLASSES)


@pytest.mark.parametrize(
    "kind",
    [kind for kind in CLASSES.values() if issubclass(kind, LanceNamespaceError)],
    ids=lambda kind: kind.__name__,
)
def test_each_code_has_the_documented_class_and_retry_behavior(kind: type[LanceNamespaceError]) -> None:
    error = kind("no")
    fails = isinstance(airflow_errors.airflow_error("reading", error), AirflowFailException)
    line = TREE[kind.__name__]
    assert (line.code, line.fate) == (int(error.code), "fails" if fails else "retried")
