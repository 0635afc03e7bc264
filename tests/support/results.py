"""Results of writes, as tests read them."""

from airflow_provider_lancens.identifiers import staged_number
from airflow_provider_lancens.spark import WriteResult


def number_of(result: WriteResult) -> int:
    """Return the number by which Lance knows the version of a result, also of a staged one."""
    return result.version or staged_number(result.staged_version) or 0
