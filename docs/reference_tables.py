"""Sphinx extension: tables of the reference that are generated from the package's code.

``{connection-fields} TYPE`` lists the fields of a connection type's form, from the provider metadata,
``{xcoms}`` what each operator and sensor returns, from the docstrings of their classes, and
``{metrics} PREFIX…`` the metrics whose names begin so.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sphinx.util.docutils import SphinxDirective

from airflow_provider_lancens.hooks.metrics import METRICS
from airflow_provider_lancens.provider_info import get_provider_info

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

_RETURNING = ("operators", "sensors")
_BASE_CLASS = "LanceOperator"
_XCOM = re.compile(r"Its XCom is ``\{(?P<fields>.*?)\}``(?P<note>.*?)(?:\n\n|\Z)", re.DOTALL)
_FIELD = re.compile(r'"(\w+)": (.*?)(?=, "\w+": |\Z)', re.DOTALL)
_PAGE = re.compile(r"`?docs/([a-z-]+)\.md`?")
_NESTED = re.compile(r"\{.*?\}")
_STANDARD_FIELDS = {"host": "Host", "port": "Port", "login": "Login", "password": "Password"}
_TYPES = {"string": "text", "number": "number", "integer": "integer"}


class ConnectionFields(SphinxDirective):
    """Lists the fields of a connection type's form."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the tables."""
        return self.parse_text_to_nodes(connection_fields(self.arguments[0]))


class XComs(SphinxDirective):
    """Lists the XCom of each operator and sensor, a section each."""

    def run(self) -> list[nodes.Node]:
        """Parse the sections."""
        return self.parse_text_to_nodes("\n\n".join(xcom_sections()), allow_section_headings=True)


class Metrics(SphinxDirective):
    """Lists the metrics whose names begin with a prefix."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Parse the table."""
        return self.parse_text_to_nodes(metrics_table(*self.arguments[0].split()))


def metrics_table(*prefixes: str) -> str:
    """Return the table of the metrics whose names begin with one of the prefixes, as Markdown.

    Args:
        prefixes: such as ``lance.poll``.
    """
    rows = [
        (f"`{one.name}`", one.kind, one.description, ", ".join(f"`{tag}`" for tag in one.tags))
        for one in METRICS.values()
        if one.name.startswith(prefixes)
    ]
    return _table(("Metric", "Kind", "Value", "Tags"), rows)


def connection_fields(conn_type: str) -> str:
    """Return the tables of a connection type's fields, as Markdown.

    Args:
        conn_type: its name, such as ``lance_hive2``.

    Raises:
        StopIteration: there is no such type.
    """
    types = get_provider_info()["connection-types"]
    described = next(one for one in types if one["connection-type"] == conn_type)
    behavior, extras = described["ui-field-behaviour"], described["conn-fields"]
    standard = [
        (behavior["relabeling"].get(name, label), f"`{name}`", behavior["placeholders"].get(name, ""))
        for name, label in _STANDARD_FIELDS.items()
        if name not in behavior["hidden-fields"]
    ]
    rows = [
        (field["label"], f"`{name}`", _allowed(field["schema"]), field["description"])
        for name, field in extras.items()
    ]
    first = _table(("Field", "Name in a connection's JSON", "Hint in the form"), standard)
    return f"{first}\n\n{_table(('Field', 'Extra', 'Value', 'Description'), rows)}"


def xcom_sections() -> Iterator[str]:
    """Yield a section for each operator and sensor, as Markdown.

    Raises:
        ValueError: a class's docstring doesn't say what its XCom is.
    """
    for package in _RETURNING:
        module = importlib.import_module(f"airflow_provider_lancens.{package}")
        for name in module.__all__:
            exported = getattr(module, name)
            if inspect.isclass(exported) and name.endswith(("Operator", "Sensor")) and name != _BASE_CLASS:
                yield _xcom_section(exported)


def _xcom_section(operator: type) -> str:
    documented = (vars(kind).get("__doc__") or "" for kind in operator.__mro__)
    found = next(filter(None, map(_XCOM.search, map(inspect.cleandoc, documented))), None)
    if found is None:
        raise ValueError(f"the docstring of {operator.__name__} doesn't say 'Its XCom is ``{{...}}``'")
    note = " ".join(found["note"].split()).lstrip(".,;: ")
    rows = [(f"`{key}`", f"`{kind}`") for key, kind in xcom_fields(found["fields"])]
    sentence = note[:1].upper() + note[1:]
    return f"## {operator.__name__}\n\n{_table(('Key', 'Type'), rows)}\n\n{sentence}"


def xcom_fields(fields: str) -> list[tuple[str, str]]:
    """Return the keys of an XCom with their types.

    Args:
        fields: what is between the braces of a docstring's ``{"table": str, "version": int}``.
    """
    flat = " ".join(fields.split())
    nested = _NESTED.findall(flat)
    for number, dictionary in enumerate(nested):  # its own keys aren't keys of the XCom
        flat = flat.replace(dictionary, f"<{number}>")
    pairs = _FIELD.findall(flat)
    return [(key, re.sub(r"<(\d+)>", lambda index: nested[int(index[1])], kind)) for key, kind in pairs]


def _allowed(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("format") == "password":
        return "secret"
    return _TYPES[schema["type"][0]]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *[[cell.replace("|", "\\|") for cell in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def linked_pages(_app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Make links of the pages that a docstring names, such as ``docs/conditions.md``."""
    lines[:] = [_PAGE.sub(r":doc:`\1`", line) for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, and the links of docstrings."""
    app.connect("autodoc-process-docstring", linked_pages)
    app.add_directive("connection-fields", ConnectionFields)
    app.add_directive("metrics", Metrics)
    app.add_directive("xcoms", XComs)
    return {"parallel_read_safe": True}
