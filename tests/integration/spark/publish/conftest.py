"""Tables with rows, to stage others beside them."""

from tests.integration.spark.maintenance.conftest import hive, on_glue, stored, table

__all__ = ["hive", "on_glue", "stored", "table"]
