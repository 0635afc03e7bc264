"""Identifiers of namespaces and tables: parse, format and validate ``a$b$c``.

This module imports only the standard library, so that DAG files, triggers and Spark executors can import it
at no cost. Each backend checks the characters and lengths that its *server* supports
(`airflow_provider_lancens.namespace`); this module checks what no identifier may contain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

DELIMITER = "$"
"""Joins the levels of an identifier (specification: Object Mapping)."""
_DOT = "."
_WRITTEN_LEVEL = re.compile(r"`(?P<quoted>[^`]*)`|(?P<plain>[^.$`]*)")


class InvalidIdentifierError(ValueError):
    """Identifier that is invalid in every namespace; the namespace layer maps it to code 13."""


@dataclass(frozen=True, slots=True)
class _Identifier:
    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            _check_part(part, self.parts)

    @classmethod
    def of(cls, parts: Iterable[str]) -> Self:
        """Make an identifier from its levels, outermost first, lower-cased as the servers do."""
        return cls(tuple(part.lower() if isinstance(part, str) else part for part in parts))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make an identifier from ``a$b$c``.

        Raises:
            InvalidIdentifierError: a level is empty, or `text` is not a string.
        """
        if text and not isinstance(text, str):
            raise InvalidIdentifierError(f"{text!r} is not a string")
        return cls.of(text.split(DELIMITER) if text else ())

    @classmethod
    def written(cls, text: str) -> Self:
        """Make an identifier from what a person writes: ``a.b.c``, or as it is printed, ``a$b$c``.

        A level whose name contains a dot is written in backticks.

        Raises:
            InvalidIdentifierError: a level is empty, `text` is not a string, or it has two readings.
        """
        if not isinstance(text, str) or not text:
            return cls.parse(text)
        levels, delimiters = _split(text)
        if len(delimiters) > 1:
            raise InvalidIdentifierError(_two_readings(text))
        return cls.of(levels)

    @classmethod
    def of_result(cls, text: str) -> Self:
        """Make an identifier from a result, an XCom or a record, which print it, or as a person writes it.

        Raises:
            InvalidIdentifierError: a level is empty, or `text` is not a string.
        """
        return cls.parse(text) if isinstance(text, str) and DELIMITER in text else cls.written(text)

    @property
    def name(self) -> str:
        """Last level."""
        return self.parts[-1]

    def __len__(self) -> int:
        return len(self.parts)

    def __str__(self) -> str:
        return DELIMITER.join(self.parts)


@dataclass(frozen=True, slots=True)
class NamespaceId(_Identifier):
    """Identifier of a namespace, a catalog or a database; without levels it is the root."""

    @property
    def is_root(self) -> bool:
        """Whether this is the root, the metastore itself."""
        return not self.parts

    @property
    def parent(self) -> NamespaceId:
        """Namespace one level up; the root is its own parent."""
        return NamespaceId(self.parts[:-1])

    def child(self, name: str) -> NamespaceId:
        """Return the namespace of that name one level down."""
        return NamespaceId.of((*self.parts, name))

    def table(self, name: str) -> TableId:
        """Return the table of that name in this namespace."""
        return TableId.of((*self.parts, name))


@dataclass(frozen=True, slots=True)
class TableId(_Identifier):
    """Identifier of a table: its namespace's levels, then its own name."""

    def __post_init__(self) -> None:
        _Identifier.__post_init__(self)
        if not self.parts:
            raise InvalidIdentifierError("a table needs a name, got an empty identifier")

    @property
    def namespace(self) -> NamespaceId:
        """Namespace of the table."""
        return NamespaceId(self.parts[:-1])


def delimited(text: str, levels: int) -> str | None:
    """Return an identifier whose levels were separated by dots as it must be written; None if they weren't.

    Args:
        text: the identifier, ``database.table``.
        levels: how many levels it must have.
    """
    written = text.replace(".", DELIMITER)
    parts = written.split(DELIMITER)
    return written if "." in text and len(parts) == levels and all(map(str.strip, parts)) else None


def _split(text: str) -> tuple[list[str], set[str]]:
    """Return the levels of what a person writes, and the delimiters between them."""
    levels: list[str] = []
    delimiters: set[str] = set()
    position = 0
    while True:
        level = _WRITTEN_LEVEL.match(text, position)
        end = position if level is None else level.end()
        if level is None or (end < len(text) and text[end] not in (_DOT, DELIMITER)):
            raise InvalidIdentifierError(
                f"identifier {text!r}: expected levels separated by '.', each plain or in backticks"
            )
        levels.append(level["plain"] if level["quoted"] is None else level["quoted"])
        if end == len(text):
            return levels, delimiters
        delimiters.add(text[end])
        position = end + 1


def _two_readings(text: str) -> str:
    dotted = text.replace(DELIMITER, _DOT)
    quoted = _DOT.join(f"`{level}`" if _DOT in level else level for level in text.split(DELIMITER))
    printed = text.replace(_DOT, DELIMITER)
    return (
        f"identifier {text!r} has two readings: the levels {printed!r}, written {dotted!r}; "
        f"or a name that contains a dot, written {quoted!r}"
    )


def is_addressable(name: str) -> bool:
    """Whether a level of an identifier can have this name: some servers also allow the delimiter in names."""
    return DELIMITER not in name and bool(name.strip())


def _check_part(part: object, parts: tuple[str, ...]) -> None:
    if not isinstance(part, str):
        raise InvalidIdentifierError(f"identifier {parts!r}: {part!r} is not a string")
    if not part.strip():
        raise InvalidIdentifierError(f"identifier {parts!r}: a level is empty")
    if DELIMITER in part:
        raise InvalidIdentifierError(
            f"identifier {parts!r}: {part!r} contains {DELIMITER!r}, which separates levels"
        )


ALLOWED_AUTHORITY = (
    "1 to 250 printable characters without spaces, '/', '@', '{' and '}', such as a connection's id"
)
"""What the authority in the URIs of assets may be; as long as Airflow's connection ids."""


def is_asset_authority(text: object) -> bool:
    """Return whether a text can be the authority in the URIs of assets, ``lance://authority/db/table``."""
    return (
        isinstance(text, str) and 0 < len(text) <= 250 and text.isprintable() and not set(text) & set("/@ {}")
    )


FIRST_STAGED = 1 << 63
"""The least number of a staged version: Lance calls such versions detached."""
_STAGED = "staged-"


def staged_name(version: int) -> str:
    """Return the name of a staged version, which can't be mistaken for a number of a table's history.

    Args:
        version: the number by which Lance knows it.
    """
    return f"{_STAGED}{version}"


def staged_number(name: object) -> int | None:
    """Return the number of a staged version by its name; None if it is no such name."""
    if not isinstance(name, str) or not name.startswith(_STAGED):
        return None
    digits = name.removeprefix(_STAGED)
    number = int(digits) if digits.isascii() and digits.isdecimal() else 0
    return number if number >= FIRST_STAGED else None


LONGEST_TAG = 200
ALLOWED_TAG = f"up to {LONGEST_TAG} ASCII letters, digits, '-', '_' and single dots inside"
"""What the name of a tag may be, for messages."""
_NO_TAG = re.compile(r"[^A-Za-z0-9_.-]|^\.|\.$|\.\.|\.lock$")


def is_tag_name(name: object) -> bool:
    """Return whether a tag, such as a bookmark, may have a name.

    Lance accepts other letters too, but then can't list any tag: it quotes them in the name of the tag's
    file, and once more when it reads that file.
    """
    return isinstance(name, str) and 0 < len(name) <= LONGEST_TAG and _NO_TAG.search(name) is None
