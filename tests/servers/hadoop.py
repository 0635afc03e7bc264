"""Helpers for Hadoop servers: free ports, and settings as XML."""

import socket
from collections.abc import Mapping
from xml.sax.saxutils import escape

HOST = "127.0.0.1"


def free_port() -> int:
    """A loopback port without a server."""
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def site_xml(settings: Mapping[str, str]) -> str:
    """The text of a site file."""
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    return f'<?xml version="1.0"?><configuration>{properties}</configuration>'
