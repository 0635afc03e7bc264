"""The tables of a metastore as Spark's ``format("lake")``.

Spark looks for data sources in the modules of its Python path whose names begin with ``pyspark_``, and
registers the class `DefaultSource` of each.
"""

import os

from airflow_provider_lancens.spark import NamespaceSpec, lance_data_source

METASTORE = NamespaceSpec(
    "airflow_provider_lancens.namespace.Hive2Namespace",
    {"uri": os.environ["LAKE_URI"], "root": os.environ["LAKE_ROOT"]},
)
DefaultSource = lance_data_source(METASTORE, name="lake")
