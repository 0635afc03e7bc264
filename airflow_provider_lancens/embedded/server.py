"""Starts and stops a metastore over a folder of its own, from the jars in PySpark or of another release."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from airflow_provider_lancens.embedded.exceptions import (
    EmbeddedMetastoreError,
    FolderInUseError,
    JarsMissingError,
    MetastoreStartError,
)
from airflow_provider_lancens.embedded.java import JavaVersions, Jvm, find_java

LOCK_FILE = "metastore.lock"

# How long a server whose owner died may take to exit.
_ORPHAN_GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Holder:
    """The server that holds a folder.

    Args:
        pid: The server's process.
        owner: The process that started it.
        uri: Where it serves; None while it is starting.
    """

    pid: int
    owner: int
    uri: str | None = None

    def __str__(self) -> str:
        doing = f"serving {self.uri}" if self.uri else "starting"
        return f"a metastore {doing} (pid {self.pid}, started by pid {self.owner})"


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Lock the folder for the process that inherits the descriptor in the block.

    Args:
        folder: The server's data folder; it exists.

    Yields:
        The descriptor to hand to the server's process. Ours is closed at the end of the block.

    Raises:
        FolderInUseError: Another server holds the folder.
    """
    with (folder / LOCK_FILE).open("ab") as file:
        _acquire(file, folder)
        yield file.fileno()


def record_holder(folder: Path, holder: Holder) -> None:
    """Record the folder's holder; only to be called by the holder."""
    (folder / LOCK_FILE).write_text(json.dumps(asdict(holder)) + "\n")


def _acquire(file: BinaryIO, folder: Path) -> None:
    deadline = time.monotonic() + _ORPHAN_GRACE_SECONDS
    while not _try_lock(file):
        holder = _read_holder(folder)
        orphaned = holder is not None and not _alive(holder.owner)
        if not orphaned or time.monotonic() > deadline:
            raise FolderInUseError(
                f"{folder} is in use by {holder or 'another process'}: stop it, or choose another folder."
            )
        time.sleep(0.05)


def _try_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(folder: Path) -> Holder | None:
    try:
        return Holder(**json.loads((folder / LOCK_FILE).read_text()))
    except (ValueError, TypeError):  # the folder was just locked, and its holder isn't recorded yet
        return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # the process is alive, and belongs to another user
    return True


@dataclass(frozen=True, slots=True)
class Distribution:
    """What is needed to start a release of the Hive Metastore.

    Args:
        name: Its display name, such as ``Hive Metastore 2.3.10``.
        class_path: Its jars and Py4J's; an entry that ends in ``/*`` stands for a folder's jars.
        java: The Java that runs these jars.
        configuration: What makes a configuration: a class or static method below
            ``org.apache.hadoop.hive``, without arguments.
        handler: The class that answers the calls.
        handler_arguments: What its constructor takes after a name and the configuration.
        handler_proxy: The class whose ``getProxy`` makes the handler retry on database errors.
        frees_connections: Whether what a connection's calls opened is freed at its end, as the release's
            own ``main`` does; False if the release offers no way to do
            that outside ``main``.
        settings: What this release needs beyond the common settings, or instead of them.
    """

    name: str
    class_path: tuple[str, ...]
    java: JavaVersions
    configuration: str
    handler: str
    handler_arguments: tuple[bool, ...]
    handler_proxy: str
    frees_connections: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


# The database's name is relative to the server's working folder (its data folder), and so can't
# be broken by what the folder's path contains.
COMMON_SETTINGS: Mapping[str, str] = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=metastore_db;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "HikariCP",
    "hive.metastore.schema.verification": "false",
    "fs.defaultFS": "file:///",
    # The default of ten tries is kept; two seconds between them would delay the failure of a hopeless start.
    "hive.hmshandler.retry.interval": "200ms",
}


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

    # Where Spark runs in this process, PySpark replaces Py4J's exceptions, and fails for exceptions of other
    # JVMs.
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
        handler = classes.forName(f"org.apache.hadoop.hive.metastore.HiveMetaStore${number}")
        if wanted.isAssignableFrom(handler):
            constructor = handler.getDeclaredConstructors()[0]
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


_ANSWER_TIMEOUT_SECONDS = 60
_LOG_TAIL_LINES = 30
_LEAST_FREE_BYTES = 4 * 1024 * 1024
_MAKE_ROOM = "Free up space there, make it writable, or choose another folder."

# Startup matters more than peak speed: half the time with the quick compiler only.
_JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dderby.stream.error.field=java.lang.System.err",
    # Seconds of waiting after which it checks for a deadlock: not the default of 20.
    "-Dderby.locks.deadlockTimeout=1",
)


class MetastoreServer:
    """A Hive Metastore on loopback, over a folder that survives restarts.

    The folder holds ``metastore_db`` (Derby), ``warehouse``, ``metastore.log`` and
    ``metastore.lock``. The server ends with `stop`, with the block, or with this process.

    Args:
        distribution: The release to run.
        folder: The folder of its data; created if missing.
        port: The port on 127.0.0.1. 0 chooses a free one at the first start and keeps it.
        settings: Settings of the server that override the defaults here, such as another database's.
        heap: The maximum Java heap size, as for ``-Xmx``.
        start_timeout: Timeout of a start, in seconds.

    Raises:
        EmbeddedMetastoreError: The folder's path is invalid for a database.
    """

    def __init__(
        self,
        distribution: Distribution,
        folder: Path,
        port: int = 0,
        *,
        settings: Mapping[str, str] | None = None,
        heap: str = "256m",
        start_timeout: float = 180,
    ) -> None:
        self.folder = _usable(Path(folder).absolute())
        self._distribution = distribution
        self._port = port
        self._settings = dict(settings or {})
        self._heap = heap
        self._start_timeout = start_timeout
        self._jvm: Jvm | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, port={self._port}, running={self.running})"

    @property
    def uri(self) -> str:
        """``thrift://127.0.0.1:PORT``, also while it is stopped.

        Raises:
            EmbeddedMetastoreError: No port is chosen before the first start.
        """
        if not self._port:
            raise EmbeddedMetastoreError(f"The metastore in {self.folder} has no port yet: start it first.")
        return f"thrift://{HOST}:{self._port}"

    @property
    def warehouse(self) -> Path:
        """The folder of databases that have no location of their own."""
        return self.folder / "warehouse"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.folder / "metastore.log"

    @property
    def running(self) -> bool:
        """Whether the server's process is running."""
        return self._jvm is not None and self._jvm.running

    @property
    def pid(self) -> int:
        """The server's process.

        Raises:
            EmbeddedMetastoreError: It hasn't been started.
        """
        return self._started().pid

    def start(self) -> Self:
        """Start it, and return when it has answered a call.

        Raises:
            JavaUnsuitableError: Java is missing or too old.
            FolderInUseError: Another server holds the folder.
            MetastoreStartError: It is running already, its port is taken, its folder is full or read-only, or
                it failed.
        """
        if self.running:
            raise MetastoreStartError(f"The metastore in {self.folder} is already serving {self.uri}.")
        self.stop()  # clean up after a server that ended by itself
        java = find_java(self._distribution.java)
        with self._writing():
            self.warehouse.mkdir(parents=True, exist_ok=True)
            with locked(self.folder) as lock:
                require_free_port(self._port)
                log_start = self.log.stat().st_size if self.log.exists() else 0
                self._jvm = Jvm(self._command(java), self.folder, self.log, lock)
        self._bring_up(self._jvm, log_start)
        return self

    def wait(self) -> int:
        """Wait until the server's process ends for any reason, and return its exit code."""
        return self._started().wait()

    def stop(self) -> None:
        """Stop it; nothing that it started is left. Does nothing where it isn't running."""
        if self._jvm:
            self._jvm.stop()

    def kill(self) -> None:
        """Kill it without a clean shutdown, as a crash would; `start` starts it again."""
        self._started().kill()

    def log_tail(self, start: int = 0) -> str:
        """Return the last lines of the log.

        Args:
            start: The offset in bytes below which nothing is of interest.
        """
        with self.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _started(self) -> Jvm:
        if self._jvm is None:
            raise EmbeddedMetastoreError(f"The metastore in {self.folder} has not been started.")
        return self._jvm

    def _command(self, java: Path) -> list[str | Path]:
        class_path = os.pathsep.join(self._distribution.class_path)
        return [java, f"-Xmx{self._heap}", *_JVM_OPTIONS, "-cp", class_path]

    def _bring_up(self, jvm: Jvm, log_start: int) -> None:
        try:
            record_holder(self.folder, Holder(jvm.pid, os.getpid()))
            with jvm.killed_after(self._start_timeout):
                self._port = self._serve(jvm)
                check_answers(self._port, _ANSWER_TIMEOUT_SECONDS)
            record_holder(self.folder, Holder(jvm.pid, os.getpid(), self.uri))
        except BaseException as error:  # interrupts included: no process may be left behind
            jvm.kill()
            if not isinstance(error, Exception):
                raise
            raise self._start_error(error, log_start) from error

    def _serve(self, jvm: Jvm) -> int:
        settings = {
            **COMMON_SETTINGS,
            "hive.metastore.warehouse.dir": f"file:{self.warehouse}",
            **self._distribution.settings,
            **self._settings,
        }
        with jvm.gateway() as view:
            try:
                return serve(view, self._distribution, settings, self._port)
            except Exception as error:  # any type, since PySpark may have replaced Java's exception
                # Read while the gateway is open: the exception is in the JVM.
                cause = root_cause(error)
                if cause is None:
                    raise
                raise MetastoreStartError(cause) from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MetastoreStartError(
                f"The metastore cannot write to {self.folder}: {error.strerror or error}. {_MAKE_ROOM}"
            ) from error

    def _start_error(self, error: Exception, log_start: int) -> MetastoreStartError:
        # Derby's message doesn't say that the file system is full.
        full = shutil.disk_usage(self.folder).free < _LEAST_FREE_BYTES
        advice = f" (its file system is full). {_MAKE_ROOM}" if full else ""
        return MetastoreStartError(
            f"{self._distribution.name} did not start in {self.folder}: {error}{advice}\nThe last "
            f"lines of {self.log}:\n{self.log_tail(log_start)}"
        )


def _usable(folder: Path) -> Path:
    if ":" in str(folder):
        raise EmbeddedMetastoreError(
            f"{folder} cannot be used for a metastore: Derby creates a database below a path that "
            "contains ':', but cannot open it again. Choose a folder without ':'."
        )
    return folder


def require_free_port(port: int) -> None:
    """Check that a port on loopback is free.

    Args:
        port: The port; 0, any free one, always passes.

    Raises:
        MetastoreStartError: A process listens on it.
    """
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((HOST, port))
        except OSError as error:
            raise MetastoreStartError(
                f"Port {port} on {HOST} cannot be opened ({error.strerror}): choose another port, "
                "or 0 for any free one."
            ) from error


def check_answers(port: int, timeout_seconds: float) -> None:
    """Check that the metastore answers a call: list its databases.

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


# The first release that compares and sets on the server (HIVE-26882), which 2.3.9 lacks.
_MINIMUM_HIVE = (2, 3, 10)
# PySpark 4's jars, and Derby's among them, are compiled for it.
_JAVA = JavaVersions(oldest=17)
_ADVICE = "Install it with: pip install 'pyspark>=4.0'"


class EmbeddedMetastore(MetastoreServer):
    """A Hive Metastore 2.3.10 from PySpark's jars, on loopback.

    Args:
        folder: The folder of its data; created if missing, and kept.
        port: The port on 127.0.0.1. 0 chooses a free one at the first start and keeps it.
        heap: The maximum Java heap size, as for ``-Xmx``.

    Raises:
        JarsMissingError: PySpark isn't installed with its jars, or is older than 4.0.
    """

    def __init__(self, folder: Path, port: int = 0, *, heap: str = "256m") -> None:
        super().__init__(pyspark_distribution(), folder, port, heap=heap)


def pyspark_distribution() -> Distribution:
    """Describe the metastore in the installed PySpark.

    Raises:
        JarsMissingError: PySpark isn't installed with its jars, or is older than 4.0.
    """
    jars = jars_folder()
    return hive_2(_hive_version(jars), f"{jars}/*")


def hive_2(version: str, *class_path: str) -> Distribution:
    """Describe a metastore of Hive 2.3 among the jars of a PySpark.

    Args:
        version: version of the server's own jar.
        class_path: jars, or folders of jars in Java's syntax; the first that contains a class provides it.
    """
    return Distribution(
        name=f"Hive Metastore {version}",
        class_path=class_path,
        java=_JAVA,
        configuration="conf.HiveConf",
        handler="metastore.HiveMetaStore.HMSHandler",
        handler_arguments=(False,),  # False: the proxy initializes the handler
        handler_proxy="metastore.RetryingHMSHandler",
        frees_connections=True,
        settings={
            # Asynchronous logging needs a library that PySpark doesn't include.
            "hive.async.log.enabled": "false",
            # New folders don't copy permissions and group of their parent, as from Hive 3 on: that starts
            # several commands for each database and table, two thirds of the time to create one.
            "hive.warehouse.subdir.inherit.perms": "false",
        },
    )


def jars_folder() -> Path:
    """Return the folder of PySpark's jars, without importing PySpark or asking SPARK_HOME.

    Raises:
        JarsMissingError: There is no PySpark, or it is only a client (``pyspark-client``).
    """
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise JarsMissingError(
            f"The embedded metastore runs from PySpark's jars, but PySpark is not installed. {_ADVICE}"
        )
    jars = Path(spec.submodule_search_locations[0], "jars")
    if not jars.is_dir():
        raise JarsMissingError(f"PySpark is installed without its jars: {jars} does not exist. {_ADVICE}")
    return jars


def _hive_version(jars: Path) -> str:
    for jar in jars.glob("hive-metastore-*.jar"):
        version = re.fullmatch(r"hive-metastore-(\d+)\.(\d+)\.(\d+)\.jar", jar.name)
        if version and tuple(map(int, version.groups())) >= _MINIMUM_HIVE:
            return ".".join(version.groups())
    raise JarsMissingError(
        f"{jars} contains no Hive Metastore 2.3.10 or newer: PySpark is too old. {_ADVICE}"
    )
