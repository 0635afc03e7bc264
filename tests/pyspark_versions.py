"""Features of the installed PySpark version that tests depend on."""

from importlib.util import find_spec

import pyspark
import pytest
from packaging.version import Version

SPARK_V_4_0_PLUS = Version(pyspark.__version__) >= Version("4.0")
SPARK_V_4_1_PLUS = Version(pyspark.__version__) >= Version("4.1")
SPARK_V_4_2_PLUS = Version(pyspark.__version__) >= Version("4.2")

has_variant = pytest.mark.skipif(not SPARK_V_4_0_PLUS, reason="Spark has VARIANT since 4.0")
has_time = pytest.mark.skipif(not SPARK_V_4_1_PLUS, reason="Spark has TIME since 4.1")
has_calendar_intervals = pytest.mark.skipif(
    not SPARK_V_4_0_PLUS, reason="PySpark itself refuses a column of calendar intervals before 4.0"
)
has_data_sources = pytest.mark.skipif(not SPARK_V_4_1_PLUS, reason="the data source needs PySpark 4.1")

has_stream_limits = pytest.mark.skipif(
    find_spec("pyspark.sql.streaming.datasource") is None, reason="a stream can be limited since PySpark 4.2"
)

has_hive_4_client = pytest.mark.skipif(not SPARK_V_4_0_PLUS, reason="Spark takes Hive 4's client since 4.0")

has_kafka_source = pytest.mark.skipif(
    not SPARK_V_4_2_PLUS, reason="tests/servers has the jars of Spark 4.2's source of Kafka messages alone"
)

has_pipelines = pytest.mark.skipif(not SPARK_V_4_1_PLUS, reason="Spark has declarative pipelines since 4.1")


def need_data_sources() -> None:
    """Skip the calling module or test before it uses what an older PySpark lacks."""
    if has_data_sources.args[0]:
        pytest.skip(has_data_sources.kwargs["reason"], allow_module_level=True)
