"""Sorted pages whose token survives creates and drops between them.

The token carries the last name of the page, not an offset: what stayed is neither skipped nor
doubled (clarifications: ListNamespaces).
"""

from __future__ import annotations

import base64
import binascii
import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from lance_namespace.errors import InvalidInputError

_PREFIX = "after:"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of names, and the token of the next one, None at the end."""

    names: list[str]
    token: str | None


def page_of(names: Iterable[str], token: str | None, limit: int | None) -> Page:
    """Sort `names` and cut the page that follows `token`.

    Args:
        names: all names, in any order, possibly repeated.
        token: what the page before answered; None or empty for the first page.
        limit: the most names to return; None for no bound.

    Raises:
        InvalidInputError: (13) the limit is below 1, or the token is none of ours.
    """
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit: expected a whole number of at least 1, got {limit}")
    after = _last_name(token) if token else None
    rest = {name for name in names if after is None or name > after}
    if limit is None or len(rest) <= limit:
        return Page(sorted(rest), None)
    cut = heapq.nsmallest(limit, rest)
    return Page(cut, base64.urlsafe_b64encode(f"{_PREFIX}{cut[-1]}".encode()).decode())


def _last_name(token: str) -> str:
    try:
        text = base64.urlsafe_b64decode(token.encode()).decode()
    except (binascii.Error, UnicodeError) as error:
        raise _foreign_token(token) from error
    if not text.startswith(_PREFIX):
        raise _foreign_token(token)
    return text.removeprefix(_PREFIX)


def _foreign_token(token: str) -> InvalidInputError:
    return InvalidInputError(
        f"page_token: {token!r} was not made by this namespace; pass the token of the page before, unchanged"
    )
