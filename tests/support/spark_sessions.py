"""The run's Spark session."""

import logging
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark.session import spark_session
from tests.servers.spark import PRELOADED

ATTEMPTS_OF_A_TASK = 2


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session with two cores that retries failed tasks, as on a cluster."""
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs every connection, even after the end
    conf = {
        "spark.master": f"local[2,{ATTEMPTS_OF_A_TASK}]",
        "spark.sql.shuffle.partitions": "2",
        # As by default since Spark 4: an older one refuses old dates in files whose writer it doesn't know.
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        **PRELOADED,
    }
    with spark_session("tests", conf) as session:
        session.sparkContext.setLogLevel("OFF")
        yield session
