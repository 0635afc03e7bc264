"""Asks a port what is there."""

import socket
from typing import Any

from airflow_provider_lancens.embedded.errors import MetastoreStartError
from airflow_provider_lancens.embedded.thrift_service import HOST


def require_free_port(port: int) -> None:
    """Check that nobody listens on a port of loopback.

    Args:
        port: The port; 0, any free one, always passes.

    Raises:
        MetastoreStartError: Someone does.
    """
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((HOST, port))
        except OSError as error:
            raise MetastoreStartError(
                f"Port {port} on {HOST} can't be opened ({error.strerror}): choose another, or 0."
            ) from error


def ask(port: int, timeout_seconds: float) -> None:
    """Make one real call to the metastore: the names of its databases.

    Raises:
        thrift.Thrift.TException: It didn't answer in time, or not as a metastore.
    """
    from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport

    connection: Any = TSocket(HOST, port)
    connection.setTimeout(timeout_seconds * 1000)
    transport = TBufferedTransport(connection)
    transport.open()
    try:
        ThriftHiveMetastore.Client(TBinaryProtocol(transport)).get_all_databases()
    finally:
        transport.close()
