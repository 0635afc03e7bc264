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

LONGEST = 20_000
"""Characters of a text that are shown; others choose how long a name, a property or an error is."""
_LONGEST_CAUSE = 1_000_000
"""Characters of a cause that are searched for secrets; a longer one isn't chained."""

NAMES_OF_SECRETS = (
    "signature|credential|token|secret|passw(?:or)?d|passphrase|pwd|bearer|jaas"
    "|(?:private|access|account|shared|api|master|storage|customer|encryption|signing)[_.-]?key(?!gen|size)"
    "|connection[_.-]?string|awsaccesskeyid|googleaccessid|sas[_.-]?key"
    "|(?:^|[^a-z])(?:sas|sig)(?:$|[^a-z])|authorization$"
)
"""Parts of names of what is secret, in any case: the syntax is Python's and Java's."""

# Each pattern takes linear time: it is possessive or bounded, or its parts match disjoint characters.
_WORD = re.compile(r"[^\s'\"<>`]++")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_USER = re.compile(r"[^/:@(),;]++")
_PASSWORD = re.compile(r":[^/\d]")
_INSIDE_USER = re.compile(r"[^\w.]")
_USER_AS_CONTAINER = ("abfs", "abfss", "wasb", "wasbs")
"""Azure's schemes: ``abfss://container@account.dfs.core.windows.net``."""
_PORT = re.compile(r"\d*")
_SECRET_NAME = re.compile(NAMES_OF_SECRETS, re.IGNORECASE)
_PARAMETER = re.compile(r"(?<![\w.-])([\w.-]++)=")
_VALUE = re.compile(r"(?!\*\*\*)[^\s&;,'\"`<>)}]++")
_QUOTED = re.compile(r"((['\"])([\w.-]++)\2\s*+[:=]\s*+(?:Some\()?(['\"]))(?:\\.|(?!\4)[^\\\n])*+\4?")

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
        parameters, and of each of `secrets`; of a longer text than `LONGEST` only the beginning.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    return _masked(text if len(text) <= LONGEST else _cut(text))


def on_one_line(text: str) -> str:
    """Return a name that others chose for a log, where a line end in it would begin a line of its own."""
    return text if text.isprintable() else repr(text)


def without_user(url: str) -> str:
    """Return a URL without the user and password before its host."""
    return redact(url).replace(f"{MASK}@", "", 1)


def has_credentials(url: str) -> bool:
    """Return whether a location or an endpoint contains a user, a password, a signature or a token."""
    word = _WORD.match(url)
    scheme = _SCHEME.match(url)
    if word is None or scheme is None:
        return word is not None and _has_bare_user(word[0])
    following = _SCHEME.search(word[0], scheme.end())
    rest = word[0][scheme.end() : following.start() if following else None]
    query = "".join(re.split(r"(?=[?;])", rest, maxsplit=1)[1:])
    return _without_user(scheme[0], rest) != rest or _without_parameters(query) != query


def is_secret(name: str) -> bool:
    """Return whether an option, a setting or a property holds a secret, judging by its name.

    This is the one rule for masks, command lines, Spark's pages and event logs, digests and reprs.
    """
    return _SECRET_NAME.search(name) is not None


def secret_values(options: Mapping[str, str]) -> frozenset[str]:
    """Return the values of storage options to hide: all but locations, switches and numbers."""
    return frozenset(value for key, value in options.items() if not _is_public(key, value))


def shareable_cause(error: BaseException, secrets: Collection[str] = ()) -> BaseException | None:
    """Return the error to chain as a cause: itself, or None if its text or a cause's text has secrets.

    A chained exception's text is logged with the error that it caused, so redacting the latter is not enough.

    Args:
        error: a library's error, as caught.
        secrets: see `redact`.
    """
    return error if all(_is_clean(str(link), secrets) for link in _chain(error)) else None


def _is_public(key: str, value: str) -> bool:
    if is_secret(key):
        return not value
    return not value or _PLACE.fullmatch(key) is not None or _SWITCH.fullmatch(value) is not None


def _chain(error: BaseException | None) -> Collection[BaseException]:
    chain: dict[int, BaseException] = {}
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if link is not None and id(link) not in chain:
            chain[id(link)] = link
            waiting += [link.__cause__, None if link.__suppress_context__ else link.__context__]
    return list(chain.values())


def _is_clean(text: str, secrets: Collection[str]) -> bool:
    if len(text) > _LONGEST_CAUSE or any(len(secret) >= _SHORTEST and secret in text for secret in secrets):
        return False
    return _masked(text) == text


def _cut(text: str) -> str:
    # Drop the last word: the cut may have separated a password from the host by which it is recognized.
    kept = text[:LONGEST]
    last = None if text[LONGEST].isspace() else max(map(kept.rfind, " \n\t'\"<>`"))
    return f"{kept[: None if last is None else last + 1]}… ({len(text)} characters)"


def _masked(text: str) -> str:
    if "@" in text:
        text = _WORD.sub(lambda word: _without_users(word[0]), text)
    text = _without_parameters(text)
    return _QUOTED.sub(lambda found: f"{found[1]}{MASK}{found[4]}" if is_secret(found[3]) else found[0], text)


def _without_parameters(text: str) -> str:
    shown, end = [], 0
    for name in _PARAMETER.finditer(text):
        if name.start() < end or not is_secret(name[1]):
            continue
        if value := _VALUE.match(text, name.end()):
            shown += [text[end : name.end()], MASK]
            end = value.end()
    return "".join([*shown, text[end:]])


def _without_users(word: str) -> str:
    if "@" not in word:
        return word
    schemes = list(_SCHEME.finditer(word)) if "://" in word else []
    ends = [*(scheme.start() for scheme in schemes[1:]), len(word)]
    urls = [
        scheme[0] + _without_user(scheme[0], word[scheme.end() : end])
        for scheme, end in zip(schemes, ends, strict=False)
    ]
    if not schemes:
        return _without_bare_users(word)
    before, following = word[: schemes[0].start()], schemes[0][0]
    return _without_bare_users(before + following).removesuffix(following) + "".join(urls)


def _without_bare_users(word: str) -> str:
    """Mask ``user:password@host`` without a scheme."""
    *parts, host = word.split("@")
    masked = []
    for part, following in zip(parts, [*parts, host][1:], strict=True):
        start = _bare_user(part) if re.match(r"\w", following) else None
        masked.append(f"{part}@" if start is None else f"{part[:start]}{MASK}@")
    return "".join([*masked, host])


def _has_bare_user(word: str) -> bool:
    user, _, host = word.partition("@")
    return re.match(r"\w", host) is not None and _bare_user(user) == 0


def _bare_user(part: str) -> int | None:
    """Return where a user and its password begin in what precedes an ``@``."""
    for user in _USER.finditer(part):
        if not _PASSWORD.match(part, user.end()):
            continue
        if user.start() == 0 or part[user.start() - 1] != "/":
            return user.start()
        if inside := _INSIDE_USER.search(part, user.start(), user.end() - 1):
            return inside.end()
    return None


def _without_user(scheme: str, rest: str) -> str:
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    if at and ":" not in user and scheme.lower().removesuffix("://") in _USER_AS_CONTAINER:
        return rest
    # A password may contain a slash: then it ends after the part that was parsed as the host.
    host, colon, port = authority.rpartition(":")
    cut_short = colon and "@" in rest and not host.startswith("[") and not _PORT.fullmatch(port)
    if not at and not cut_short:
        return rest
    return f"{MASK}@{rest.rpartition('@')[2]}"
