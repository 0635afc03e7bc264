"""Sorted pagination with tokens that remain valid after creates and drops in between.

The token contains the last name of the page, not an offset: existing names are neither skipped nor
repeated (clarifications: ListNamespaces).
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from airflow_provider_lancens import spec_errors

_PREFIX = "after:"


@dataclass(frozen=True, slots=True)
class Page:
    """Page of names and the token of the next one, None at the end."""

    names: list[str]
    token: str | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which part of a sorted list is requested."""

    after: str | None = None
    """Last name of the previous page; None for the first page."""
    limit: int | None = None
    """Maximum number of names; None for no limit."""

    @classmethod
    def parse(cls, token: str | None, limit: int | None) -> Self:
        """Read the fields of a request.

        Args:
            token: the previous page's token; None or empty for the first page.
            limit: maximum number of names to return; None for no limit.

        Raises:
            InvalidInputError: (13) the limit is below 1, or the token is invalid.
        """
        if limit is not None and limit < 1:
            raise spec_errors.InvalidInputError(f"limit: expected a whole number of at least 1, got {limit}")
        return cls(_last_name(token) if token else None, limit)

    def start(self, names: Sequence[str]) -> int:
        """Return the index of the page's first name in sorted names."""
        return 0 if self.after is None else bisect_right(names, self.after)

    def cut(self, names: Sequence[str]) -> Page:
        """Return the page of sorted names, without repetitions."""
        start = self.start(names)
        end = len(names) if self.limit is None else min(start + self.limit, len(names))
        return Page(list(names[start:end]), None if end == len(names) else token_after(names[end - 1]))


def token_after(name: str) -> str:
    """Return the token of the page that begins after a name."""
    return base64.urlsafe_b64encode(f"{_PREFIX}{name}".encode()).decode()


def page_of(names: Iterable[str], token: str | None, limit: int | None) -> Page:
    """Sort `names`, which may be repeated, and return the page that follows `token`.

    Raises:
        InvalidInputError: (13) the limit is below 1, or the token is invalid.
    """
    return PageRequest.parse(token, limit).cut(sorted(set(names)))


def _last_name(token: str) -> str:
    try:
        text = base64.urlsafe_b64decode(token.encode()).decode()
    except (binascii.Error, UnicodeError) as error:
        raise _invalid_token(token) from error
    if not text.startswith(_PREFIX):
        raise _invalid_token(token)
    return text.removeprefix(_PREFIX)


def _invalid_token(token: str) -> spec_errors.InvalidInputError:
    return spec_errors.InvalidInputError(
        f"page_token: {token!r} was not issued by this namespace; pass the token of the previous "
        "page, unchanged"
    )


def all_names(page: Callable[[str | None], tuple[Iterable[str], str | None]]) -> Iterator[str]:
    """Yield the names of all pages of a list.

    Args:
        page: returns the names of the page that a token names, None for the first one, and the token of the
            next page. A catalog that returns the same token again has no further page.
    """
    token: str | None = None
    while True:
        names, following = page(token)
        yield from names
        if not following or following == token:
            return
        token = following
