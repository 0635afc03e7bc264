"""The error of a PySpark without support for this Python data source."""

import pytest

from tests.pyspark_versions import SPARK_V_4_1_PLUS


@pytest.mark.skipif(SPARK_V_4_1_PLUS, reason="this PySpark has it")
def test_the_import_error_says_what_to_use_instead() -> None:
    with pytest.raises(ImportError, match=r"requires PySpark 4\.1 or newer; use the methods of a Table"):
        from airflow_provider_lancens.spark import LanceDataSource  # noqa: F401
