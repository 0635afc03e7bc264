"""The metastore included in every installed PySpark."""

import re
from importlib.util import find_spec
from pathlib import Path

from airflow_provider_lancens.embedded.distribution import Distribution
from airflow_provider_lancens.embedded.exceptions import JarsMissingError
from airflow_provider_lancens.embedded.java import JavaVersions
from airflow_provider_lancens.embedded.server import MetastoreServer

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
        handler_arguments=(False,),  # the proxy initializes it
        handler_proxy="metastore.RetryingHMSHandler",
        frees_connections=True,
        # Asynchronous logging needs a library that PySpark doesn't include.
        settings={"hive.async.log.enabled": "false"},
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
