"""Apache Airflow provider for Lance tables registered in Hive Metastore and AWS Glue."""

__version__ = "0.1.0"
