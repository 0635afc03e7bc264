"""The syntax, parsed by sqlglot with few keywords: all other words are names, so no other SQL is recognized.

Syntax beyond the grammar that sqlglot parses is refused when the tree is built; text after a complete
condition is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from sqlglot import Token, TokenType, exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from airflow_provider_lancens import spec_errors

SqlNode = Any
"""A node of sqlglot's, whose types change with its versions."""
_MOST_CHARACTERS = 1_000_000
_ARITHMETIC = frozenset(["DASH", "MOD", "PLUS", "SLASH", "STAR"])
_NO_ARITHMETIC = (
    "; conditions have no arithmetic: filter the DataFrame by where(), or pylance's dataset by "
    "to_table(filter=…)"
)
_DEEPEST = 40
"""How many parentheses or words that negate may be open at once: the parser calls itself for each."""
_WINDOW = 60
_WORDS = "AND OR NOT IS NULL TRUE FALSE IN BETWEEN LIKE DATE TIMESTAMP"
_SIGNS = {"<=": "LTE", ">=": "GTE", "<>": "NEQ", "!=": "NEQ", "==": "EQ", "||": "DPIPE"}
_TOKENS = "STRING NUMBER HEX_STRING IDENTIFIER VAR L_PAREN R_PAREN COMMA DOT EQ NEQ LT GT LTE GTE DASH PLUS"
CONDITION = frozenset([*_WORDS.split(), *_TOKENS.split()])
"""The kinds of tokens of a condition."""
_TYPES = {
    **{name: name for name in ("INT", "BIGINT", "SMALLINT", "TINYINT", "FLOAT", "DOUBLE", "DECIMAL")},
    "BOOLEAN": "BOOLEAN",
    "BINARY": "BINARY",
    "INTEGER": "INT",
    "STRING": "TEXT",
}
EXPRESSION = CONDITION | {"STAR", "SLASH", "MOD", "DPIPE", "ALIAS", *_TYPES.values()}
"""The kinds of tokens of an expression for a column's values."""
_KEYWORDS = {word: getattr(TokenType, word) for word in _WORDS.split()} | {
    sign: getattr(TokenType, name) for sign, name in _SIGNS.items()
}


class _Tokenizer(tokens.Tokenizer):
    QUOTES = ["'"]
    STRING_ESCAPES = ["'"]
    IDENTIFIERS = ['"', "`"]
    HEX_STRINGS = [("X'", "'"), ("x'", "'")]
    KEYWORDS = _KEYWORDS


class _Parser(parser.Parser):
    FUNCTIONS = {}
    FUNCTION_PARSERS = {}
    NO_PAREN_FUNCTIONS = {}
    NO_PAREN_FUNCTION_PARSERS = {}


class LanceConditions(Dialect):
    """The dialect of conditions."""

    Tokenizer = _Tokenizer
    Parser = _Parser


class LanceExpressions(Dialect):
    """The dialect of expressions for the values of columns."""

    class Tokenizer(_Tokenizer):
        """The words of conditions, and the names of types."""

        KEYWORDS = (
            _KEYWORDS
            | {"AS": TokenType.ALIAS}
            | {word: getattr(TokenType, name) for word, name in _TYPES.items()}
        )

    class Parser(_Parser):
        """Knows CAST besides."""

        FUNCTION_PARSERS = {"CAST": lambda self: self._parse_cast(True)}


class Source:
    """The text of a condition, and the errors that refer to it."""

    def __init__(self, text: str, argument: str, what: str = "condition") -> None:
        """Take the text, what the caller calls it, and what it is."""
        self.text = text
        self.argument = argument
        self.what = what

    def parse(self, dialect: type[Dialect], allowed: Collection[str]) -> SqlNode:
        """Parse the text completely.

        Args:
            dialect: the words of the language.
            allowed: the kinds of its tokens.

        Raises:
            InvalidInputError: (13) it is no text, blank, too long, nested too deeply, or more or less than
                one condition; the message marks the place.
        """
        if not isinstance(self.text, str):
            raise self.error(
                f"expected {self._article} {self.what} as text, such as 'id > 3', got {self.text!r}"
            )
        if len(self.text) > _MOST_CHARACTERS:
            raise self.error(f"expected at most {_MOST_CHARACTERS:,} characters, got {len(self.text):,}")
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            raise self.error("a character that isn't Unicode text", error.start, error.end) from None
        spoken = dialect()
        try:
            words = spoken.tokenize(self.text)
        except TokenError:
            start = self._open_quote()
            raise self.error("a quote or a comment isn't closed", start, len(self.text)) from None
        self._check(words, allowed)
        try:
            (parsed,) = spoken.parser().parse_into(exp.Condition, words, self.text)
        except ParseError as error:
            raise self._translated(error, words) from None
        except RecursionError:
            raise self.error(f"the {self.what} is nested too deeply") from None
        if parsed is None:
            raise self.error(f"expected {self._article} {self.what}, got blank text")
        return parsed

    @property
    def _article(self) -> str:
        return "an" if self.what[0] in "aeiou" else "a"

    def error(self, problem: str, start: int | None = None, end: int = 0) -> Exception:
        """Return the error that marks the characters from `start` up to `end`; None marks none."""
        text = f"{self.argument}: {problem}"
        if start is not None:
            text += "\n" + self._marked(start, max(end, start + 1))
        elif isinstance(self.text, str) and self.text.strip():
            text += f": {self.text[:_WINDOW]!r}"
        return spec_errors.InvalidInputError(text)

    def at(self, node: SqlNode, problem: str) -> Exception:
        """Return the error that marks a part of the text."""
        places = [part.meta for part in node.walk() if "start" in part.meta]
        if not places:
            return self.error(problem)
        end = max(place["end"] for place in places) + 1
        return self.error(problem, min(place["start"] for place in places), end)

    def _marked(self, start: int, end: int) -> str:
        """Return the line of a place, and marks below the place."""
        begin = max(self.text.rfind("\n", 0, start) + 1, start - _WINDOW)
        line = self.text[begin : start + _WINDOW].split("\n", maxsplit=1)[0].replace("\t", " ").rstrip("\r")
        width = max(1, min(end - start, len(line) - (start - begin)))
        return f"  {line}\n  {' ' * (start - begin)}{'^' * width}"

    def _open_quote(self) -> int:
        """Return where the quote or comment begins that nothing closes."""
        closed = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|/\*.*?\*/"
        rest = re.sub(closed, lambda match: " " * len(match[0]), self.text, flags=re.DOTALL)
        return min((rest.find(opening) for opening in ("'", '"', "`", "/*") if opening in rest), default=0)

    def _check(self, found: list[Token], allowed: Collection[str]) -> None:
        if not found:
            raise self.error(f"expected {self._article} {self.what}, got blank text")
        depth = negations = 0
        before = ["", ""]
        for token in found:
            kind, end = token.token_type.name, token.end + 1
            if token.comments:
                raise self.error("comments aren't allowed", *self._comment(token))
            if kind not in allowed or (kind == "NOT" and token.text == "!"):
                hint = _NO_ARITHMETIC if kind in _ARITHMETIC else ""
                raise self.error(f"unexpected {self.text[token.start : end]!r}{hint}", token.start, end)
            # sqlglot would accept these as IS NOT NULL and as (1, 2).
            if (kind == "NULL" and before[1] == "NOT" and before[0] != "IS") or (
                kind == "R_PAREN" and before[1] == "COMMA"
            ):
                raise self.error(f"unexpected {self.text[token.start : end]!r}", token.start, end)
            before = [before[1], kind]
            depth += (kind == "L_PAREN") - (kind == "R_PAREN")
            negations = negations + 1 if kind in ("NOT", "DASH", "PLUS", "L_PAREN") else 0
            if max(depth, negations) > _DEEPEST:
                raise self.error(f"the {self.what} is nested too deeply", token.start, end)

    def _comment(self, token: Token) -> tuple[int, int]:
        starts = [at for at in (self.text.find("--"), self.text.find("/*")) if at >= 0]
        after = [at for mark in ("--", "/*") if (at := self.text.find(mark, token.end)) >= 0]
        start = min(after or starts or [token.start])
        return start, start + 2

    def _translated(self, error: ParseError, found: list[Token]) -> Exception:
        """Convert an error of sqlglot, which has the position at which a token ends."""
        first: Any = error.errors[0] if error.errors else {}
        places = {(token.line, token.col): token for token in found}
        token = places.get((first.get("line"), first.get("col")), found[-1])
        shown = self.text[token.start : token.end + 1]
        description = str(first.get("description", ""))
        if token is found[-1] and "Unexpected token" not in description:
            return self.error(f"incomplete after {shown!r}", token.start, token.end + 1)
        hint = "; text in single quotes is a value, names have none" if shown.startswith("'") else ""
        if description.startswith("Expecting )"):
            return self.error(f"expected ) before or at {shown!r}", token.start, token.end + 1)
        return self.error(f"unexpected {shown!r}{hint}", token.start, token.end + 1)
