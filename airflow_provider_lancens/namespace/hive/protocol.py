"""Thrift's binary protocol with a check that each reply belongs to the call that was sent."""

from __future__ import annotations

from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TMessageType

from airflow_provider_lancens.namespace.hive.limits import MAX_TEXT

_MAX_ITEMS = 10_000_000
"""Items of one list or map: memory for all of them is allocated before the first is read."""
_REPLIES = (TMessageType.REPLY, TMessageType.EXCEPTION)


class OutOfStepError(ConnectionError):
    """Reply that doesn't belong to the call that was sent: the connection must not be used again."""


class MessageProtocol(TBinaryProtocolAccelerated):  # type: ignore[misc]
    """Protocol that numbers calls, unlike the generated clients, and checks each reply's number and name."""

    def __init__(self, transport: Any) -> None:
        """Take an open transport."""
        super().__init__(
            transport, strictRead=True, string_length_limit=MAX_TEXT, container_length_limit=_MAX_ITEMS
        )
        self.is_sent = False
        """Whether the current call was encoded completely: later errors come from its reply."""
        self._name = ""
        self._number = 0

    def writeMessageBegin(self, name: str, kind: int, number: int) -> None:  # noqa: N802, ARG002 - thrift's
        """Begin a call, with a sequence number of our own."""
        self._name = name
        self._number = (self._number + 1) % 2**31
        super().writeMessageBegin(name, kind, self._number)

    def writeMessageEnd(self) -> None:  # noqa: N802 - thrift's
        """End a call, which is then sent."""
        super().writeMessageEnd()
        self.is_sent = True

    def readMessageBegin(self) -> tuple[str, int, int]:  # noqa: N802 - thrift's
        """Begin a reply.

        Raises:
            OutOfStepError: it isn't a reply, or another call's.
        """
        try:
            name, kind, number = super().readMessageBegin()
        except (TProtocolException, UnicodeDecodeError) as error:
            raise OutOfStepError(f"its reply is not a Thrift message: {error}") from error
        if kind not in _REPLIES or (name, number) != (self._name, self._number):
            raise OutOfStepError(
                f"it replied to call {number} of {name!r}, expected a reply to call {self._number} "
                f"of {self._name!r}"
            )
        return name, kind, number
