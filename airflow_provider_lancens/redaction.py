"""Removes secrets from text for messages, log lines, links and reprs.

A URL can contain a user and password before the host, or a signature in its query; a library's error quotes
the URL, or the value of an option that it could not parse. All such text passes through `redact` before it
is shown.

This module imports only the standard library, so that DAG files and executors can import it at no cost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

MASK = "***"

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{0,30}://"
# Up to the next URL of a list, or to a character that a URL can't contain.
_URL = re.compile(rf"({_SCHEME})((?:(?!{_SCHEME})[^\s'\"<>`])+)")
_BARE_USER = re.compile(r"(?<![\w/.])[^\s/:@'\"(),;]+:(?![/\d])[^\s@'\"]+@(?=\w)")
"""``user:password@host`` without a scheme."""
_URL_OR_USER = re.compile(f"{_URL.pattern}|{_BARE_USER.pattern}")
_USER_AS_CONTAINER = ("abfs", "abfss", "wasb", "wasbs")
"""Azure's schemes: ``abfss://container@account.dfs.core.windows.net``."""
_PORT = re.compile(r"\d*")
_SENSITIVE_NAMES = (
    r"[\w.-]*(?:signature|credential|token|secret|passw(?:or)?d|pwd|private[_.-]?key|access[_.-]?key"
    r"|account[_.-]?key|shared[_.-]?key|sas[_.-]?key|api[_.-]?key|awsaccesskeyid|googleaccessid)[\w.-]*|sig"
)
_PARAMETER = re.compile(rf"(?i)(?<![\w.-])((?:{_SENSITIVE_NAMES})=)(?!\*\*\*)[^\s&;,'\"`<>)}}]+")
_QUOTED = re.compile(rf"(?i)((['\"])(?:{_SENSITIVE_NAMES})\2\s*[:=]\s*(?:Some\()?)(['\"])(?:(?!\3).)*\3")

_SHORTEST = 4
"""Minimum length of a value to search for in a text: a shorter one would match everywhere."""
_PLACE = re.compile(
    r"(?i)(?:aws_|azure_|google_)?(?:(?:default_)?region|(?:storage_)?account_name|bucket(?:_name)?"
    r"|container(?:_name)?|(?:storage_)?endpoint(?:_url)?)"
)
"""Options that name a location. An endpoint is redacted as a URL."""
_SWITCH = re.compile(r"(?i)true|false|\d+ ?(?:ms|s|m|h)?")
"""Values that reveal nothing, except for a secret option."""


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """Return the text without secrets, unchanged if it contains none.

    Args:
        text: a URL, or any text that contains URLs.
        secrets: further values to hide, such as `secret_values` of options.

    Returns:
        The text with ``***`` in place of users and passwords of URLs, of signatures and credentials in their
        parameters, and of each of `secrets`.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    text = _URL_OR_USER.sub(_without_credentials, text)
    text = _PARAMETER.sub(rf"\g<1>{MASK}", text)
    return _QUOTED.sub(rf"\g<1>\g<3>{MASK}\g<3>", text)


def without_user(url: str) -> str:
    """Return a URL without the user and password before its host."""
    return redact(url).replace(f"{MASK}@", "", 1)


def has_credentials(url: str) -> bool:
    """Return whether a location or an endpoint contains a user, a password, a signature or a token."""
    found = _URL.match(url)
    if found is None:
        return _BARE_USER.match(url) is not None
    query = "".join(re.split(r"(?=[?;])", found[2], maxsplit=1)[1:])
    return _without_user(found[1], found[2]) != found[2] or _PARAMETER.search(query) is not None


def is_secret(name: str) -> bool:
    """Return whether an option, a setting or a property holds a secret, judging by its name."""
    return re.fullmatch(_SENSITIVE_NAMES, name, re.IGNORECASE) is not None


def secret_values(options: Mapping[str, str]) -> frozenset[str]:
    """Return the values of storage options to hide: all but locations, switches and numbers."""
    return frozenset(value for key, value in options.items() if not _is_public(key, value))


def shareable_cause(error: BaseException, secrets: Collection[str] = ()) -> BaseException | None:
    """Return the error to chain as a cause: itself, or None if its text or that of its causes has secrets.

    A chained exception's text is logged with the error that it caused, so redacting the latter is not enough.

    Args:
        error: a library's error, as caught.
        secrets: see `redact`.
    """
    return error if all(_is_clean(str(one), secrets) for one in _chain(error)) else None


def _is_public(key: str, value: str) -> bool:
    if is_secret(key):
        return not value
    return not value or _PLACE.fullmatch(key) is not None or _SWITCH.fullmatch(value) is not None


def _chain(error: BaseException | None) -> Collection[BaseException]:
    chain: dict[int, BaseException] = {}
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in chain:
            chain[id(one)] = one
            waiting += [one.__cause__, None if one.__suppress_context__ else one.__context__]
    return list(chain.values())


def _is_clean(text: str, secrets: Collection[str]) -> bool:
    return redact(text, secrets) == text


def _without_credentials(found: re.Match[str]) -> str:
    return found[1] + _without_user(found[1], found[2]) if found[1] else f"{MASK}@"


def _without_user(scheme: str, rest: str) -> str:
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    if at and ":" not in user and scheme.lower().removesuffix("://") in _USER_AS_CONTAINER:
        return rest
    # A password may contain a slash, and then ends after what looks like the host.
    host, colon, port = authority.rpartition(":")
    cut_short = colon and "@" in rest and not host.startswith("[") and not _PORT.fullmatch(port)
    if not at and not cut_short:
        return rest
    return f"{MASK}@{rest.rpartition('@')[2]}"
