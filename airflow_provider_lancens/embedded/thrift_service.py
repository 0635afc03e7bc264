"""Assembles the metastore's own parts inside the JVM, on loopback.

HMS 2.x and 3.x have no setting for the address: their ``main`` listens on every interface. So this
module does what ``HiveMetaStore.startMetaStore`` does, with its own socket.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from airflow_provider_lancens.embedded.distribution import Distribution

HOST = "127.0.0.1"
_UNNAMED_CLASSES = 10
"""Java numbers a class's anonymous classes; HiveMetaStore has three or four."""


def serve(jvm: Any, distribution: Distribution, settings: Mapping[str, str], port: int) -> int:
    """Start the server in threads of the JVM, and return the port.

    Args:
        jvm: The view into the JVM.
        distribution: The release, whose jars the JVM runs.
        settings: All of the server's settings.
        port: The port on loopback; 0 lets the system choose.

    Raises:
        py4j.protocol.Py4JJavaError: The database or the port can't be opened.
    """
    # The handler comes first: if it fails, no port is left open without a server.
    handler = _handler(jvm.org.apache.hadoop.hive, distribution, settings)
    thrift = jvm.org.apache.thrift
    socket = thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress(HOST, port))
    arguments = thrift.server.TThreadPoolServer.Args(socket)
    arguments = arguments.processor(jvm.org.apache.hadoop.hive.metastore.TSetIpAddressProcessor(handler))
    server = thrift.server.TThreadPoolServer(arguments)
    if distribution.frees_connections:
        server.setServerEventHandler(_connection_events(jvm))
    _run_in_thread(jvm, server, "serve")
    return int(socket.getServerSocket().getLocalPort())


def root_cause(error: BaseException | None) -> str | None:
    """Return the root cause of an exception in Java in one line; None if Java raised none."""
    from py4j.protocol import Py4JJavaError

    # Where Spark runs in this process, PySpark replaces Py4J's exceptions, and fails for those of other JVMs.
    while error is not None and not isinstance(error, Py4JJavaError):
        error = error.__context__
    if error is None:
        return None
    cause: Any = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).strip()


def _handler(hive: Any, distribution: Distribution, settings: Mapping[str, str]) -> Any:
    configuration = _below(hive, distribution.configuration)()
    for name, value in settings.items():
        configuration.set(name, value)
    make_handler = _below(hive, distribution.handler)
    plain = make_handler("embedded", configuration, *distribution.handler_arguments)
    return _below(hive, distribution.handler_proxy).getProxy(configuration, plain, True)


def _connection_events(jvm: Any) -> Any:
    """Create the handler that the release's ``main`` sets for connections: at their end, it frees resources.

    Without it each of the server's threads would keep a session of the database, and a client that
    connects for each call would seem faster here than on other servers.
    """
    classes = jvm.java.lang.Class
    wanted = classes.forName("org.apache.thrift.server.TServerEventHandler")
    for number in range(1, _UNNAMED_CLASSES):
        found = classes.forName(f"org.apache.hadoop.hive.metastore.HiveMetaStore${number}")
        if wanted.isAssignableFrom(found):
            constructor = found.getDeclaredConstructors()[0]
            constructor.setAccessible(True)
            return constructor.newInstance(jvm.java.util.ArrayList().toArray())
    raise LookupError("HiveMetaStore has no connection handler")


def _below(package: Any, path: str) -> Any:
    return reduce(getattr, path.split("."), package)


def _run_in_thread(jvm: Any, target: Any, method: str) -> None:
    """Run a method without arguments in a Java thread, so that no Python thread has to wait for it."""
    invoke, lang = jvm.java.lang.invoke, jvm.java.lang
    signature = invoke.MethodType.methodType(lang.Void.TYPE)
    handle = invoke.MethodHandles.publicLookup().findVirtual(target.getClass(), method, signature)
    runnable = lang.Class.forName("java.lang.Runnable")
    lang.Thread(invoke.MethodHandleProxies.asInterfaceInstance(runnable, handle.bindTo(target))).start()
