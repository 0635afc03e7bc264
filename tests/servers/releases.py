"""The releases of the Hive Metastore that the tests run besides PySpark's 2.3.10."""

from dataclasses import replace
from pathlib import Path

from airflow_provider_lancens.embedded import Distribution
from airflow_provider_lancens.embedded.exceptions import JarsMissingError
from airflow_provider_lancens.embedded.java import JavaVersions
from airflow_provider_lancens.embedded.server import hive_2, jars_folder, pyspark_distribution
from tests.servers.maven import jars_of

HERE = Path(__file__).parent

# Their Hadoop uses a part of Java that Java 23 removed (the security manager's subject).
JAVA = JavaVersions(oldest=8, newest=22)

PARTITIONS_WITHOUT_HIVE = {
    # The default one is in Hive's jar, which a standalone metastore lacks.
    "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
}


def hms_2() -> Distribution:
    """2.3.10 as in the embedded metastore; the older one of PySpark 3.5 is updated with some jars."""
    try:
        return pyspark_distribution()
    except JarsMissingError:
        return hive_2("2.3.10", f"{jars_of(HERE / 'hms-2.3.10.xml')}/*", f"{jars_folder()}/*")


def hms_2_with_postgresql() -> Distribution:
    """The same, with PostgreSQL's driver."""
    plain = hms_2()
    driver = next(jars_of(HERE / "hms-3.1.3.xml").glob("postgresql-*.jar"))
    return replace(plain, class_path=(*plain.class_path, str(driver)))


def hms_2_with_s3() -> Distribution:
    """The same, with Hadoop's file system for S3."""
    plain = hms_2()
    return replace(plain, class_path=(*plain.class_path, f"{jars_of(HERE / 'hadoop-aws.xml')}/*"))


def hms_3() -> Distribution:
    return Distribution(
        name="Hive Metastore 3.1.3",
        class_path=_class_path("hms-3.1.3.xml"),
        java=JAVA,
        configuration="metastore.conf.MetastoreConf.newMetastoreConf",
        handler="metastore.HiveMetaStore.HMSHandler",
        handler_arguments=(False,),
        handler_proxy="metastore.RetryingHMSHandler",
        settings={
            **PARTITIONS_WITHOUT_HIVE,
            # The default list contains tasks of Hive's jar.
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
        },
    )


def hms_4() -> Distribution:
    return Distribution(
        name="Hive Metastore 4.0.1",
        class_path=_class_path("hms-4.0.1.xml"),
        java=JAVA,
        configuration="metastore.conf.MetastoreConf.newMetastoreConf",
        handler="metastore.HMSHandler",
        handler_arguments=(),
        handler_proxy="metastore.HMSHandlerProxyFactory",
        settings=PARTITIONS_WITHOUT_HIVE,
    )


def _class_path(pom: str) -> tuple[str, ...]:
    py4j = next(jars_folder().glob("py4j-*.jar"))
    return (f"{jars_of(HERE / pom)}/*", str(py4j))
