"""Description of a release of the Hive Metastore to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_lancens.embedded.java import JavaVersions


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
