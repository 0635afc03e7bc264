"""A YARN cluster of one node: processes of a resource manager and a node manager, on free loopback ports."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_lancens.embedded.java import JavaVersions, clean_environment, find_java
from airflow_provider_lancens.embedded.server import jars_folder
from tests.servers.daemon import Daemon
from tests.servers.hadoop import HOST, free_port, site_xml
from tests.servers.maven import jars_of

SERVERS = "org.apache.hadoop.yarn.server"
JAVA = JavaVersions(oldest=17)
TREE = Path(__file__).parents[2]
_OPTIONS = [
    "-Xmx300m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",  # Guice generates classes at run time
]
LOG = """
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


@dataclass(frozen=True)
class Yarn:
    """A running YARN cluster."""

    folder: Path

    @property
    def conf_dir(self) -> Path:
        """The folder for HADOOP_CONF_DIR."""
        return self.folder / "conf"

    @property
    def staging(self) -> Path:
        """Where Spark uploads files for containers, with a folder per application."""
        return self.folder / "staging"

    @property
    def containers(self) -> Path:
        """Where the node manager stores these files, and containers run."""
        return self.folder / "containers"

    @property
    def logs(self) -> Path:
        """Output of containers, with a folder per application and per container."""
        return self.folder / "logs"

    @property
    def spark_conf(self) -> dict[str, str]:
        """Settings for small containers with the tests' Python and this tree; Spark's jars are not copied."""
        environment = {"SPARK_LOCAL_IP": HOST, "PYTHONPATH": str(TREE)}
        return {
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.instances": "1",
            "spark.pyspark.python": sys.executable,
            "spark.yarn.jars": f"local:{jars_folder()}/*",
            "spark.yarn.stagingDir": self.staging.as_uri(),
            **{f"spark.yarn.appMasterEnv.{name}": value for name, value in environment.items()},
            **{f"spark.executorEnv.{name}": value for name, value in environment.items()},
        }


@contextmanager
def yarn_cluster(folder: Path) -> Iterator[Yarn]:
    """Run a cluster with its files in a folder; its node is registered."""
    yarn = Yarn(folder)
    _configure(yarn)
    with _server(yarn, "resourcemanager.ResourceManager") as manager:
        manager.read(r"(Transitioned to active state)")
        with _server(yarn, "nodemanager.NodeManager"):
            manager.read(r"(Added node)")
            yield yarn


def _configure(yarn: Yarn) -> None:
    for name in ("cluster", "node", "static"):  # the mini-cluster's jar has no web pages
        (yarn.folder / "webapps" / name).mkdir(parents=True)
    yarn.conf_dir.mkdir()
    text = site_xml(_settings(yarn))
    for name in ("core-site.xml", "yarn-site.xml", "capacity-scheduler.xml"):
        (yarn.conf_dir / name).write_text(text)
    (yarn.folder / "log4j2.properties").write_text(
        LOG
    )  # not in the configuration folder, where Spark would use it


def _settings(yarn: Yarn) -> dict[str, str]:
    return {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": str(yarn.folder / "tmp"),
        "yarn.resourcemanager.address": f"{HOST}:{free_port()}",
        "yarn.resourcemanager.scheduler.address": f"{HOST}:{free_port()}",
        "yarn.resourcemanager.resource-tracker.address": f"{HOST}:{free_port()}",
        "yarn.resourcemanager.admin.address": f"{HOST}:{free_port()}",
        "yarn.resourcemanager.webapp.address": f"{HOST}:{free_port()}",
        "yarn.nodemanager.address": f"{HOST}:0",
        "yarn.nodemanager.localizer.address": f"{HOST}:0",
        "yarn.nodemanager.collector-service.address": f"{HOST}:0",
        "yarn.nodemanager.webapp.address": f"{HOST}:0",
        "yarn.nodemanager.hostname": HOST,
        "yarn.nodemanager.local-dirs": str(yarn.containers),
        "yarn.nodemanager.log-dirs": str(yarn.logs),
        "yarn.nodemanager.delete.debug-delay-sec": "3600",  # so that their files can be read
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.resource.memory-mb": "4096",
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
        "yarn.scheduler.capacity.root.queues": "default",
        "yarn.scheduler.capacity.root.default.capacity": "100",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    }


def _server(yarn: Yarn, main: str) -> Daemon:
    jars = (jars_of(Path(__file__).with_name("yarn.xml")), jars_folder())
    class_path = os.pathsep.join([str(yarn.conf_dir), str(yarn.folder), *(f"{folder}/*" for folder in jars)])
    command = [find_java(JAVA), *_OPTIONS, "-cp", class_path, f"{SERVERS}.{main}"]
    return Daemon(command, clean_environment())
