"""A Kafka broker on loopback, and what producers send to it."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.daemon import Daemon
from tests.servers.hadoop import free_port
from tests.servers.maven import jars_of

SECONDS = 120
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_SETTINGS = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={folder}/messages
num.partitions=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
transaction.state.log.replication.factor=1
"""


@dataclass(frozen=True)
class KafkaBroker:
    """A running broker."""

    servers: str
    """Its ``host:port``."""

    def send(self, topic: str, messages: Iterable[tuple[str, str]]) -> None:
        """Send messages, each with its key; the first one creates the topic, with two partitions."""
        lines = "".join(f"{key}\t{value}\n" for key, value in messages)
        to = ("--bootstrap-server", self.servers, "--topic", topic, "--reader-property", "parse.key=true")
        _run("org.apache.kafka.tools.ConsoleProducer", *to, given=lines)


@contextmanager
def kafka_broker(folder: Path) -> Iterator[KafkaBroker]:
    """Run a broker that is its own controller, with its files in a folder."""
    port = free_port()
    settings = folder / "server.properties"
    settings.write_text(_SETTINGS.format(port=port, controller=free_port(), folder=folder))
    _run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings))
    with Daemon([*_java("kafka.Kafka"), settings], os.environ) as broker:
        broker.read("(Kafka Server started)")
        yield KafkaBroker(f"127.0.0.1:{port}")


def _run(tool: str, *arguments: str, given: str = "") -> None:
    command = [*_java(tool), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def _java(main: str) -> list[str]:
    jars = jars_of(Path(__file__).with_name("kafka.xml"))
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", main]
