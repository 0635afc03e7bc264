"""Tables with rows, to stage others beside them."""

from tests.support.maintained_tables import hive, on_glue, stored, table

__all__ = ["hive", "on_glue", "stored", "table"]
