"""What a PySpark says that has no Python data source of this kind."""

import pytest

from tests.sparks import SPARK_V_4_1_PLUS


@pytest.mark.skipif(SPARK_V_4_1_PLUS, reason="this PySpark has it")
def test_the_import_itself_says_what_to_use_instead() -> None:
    with pytest.raises(ImportError, match=r"needs 4\.1 or newer; write_table and read_table"):
        from airflow_provider_lancens.spark import LanceDataSource  # noqa: F401
