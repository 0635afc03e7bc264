"""Records of idempotency keys: what was committed under a key, at any age of the table.

The other packages use what is exported here: a write looks its key up before any work (`look_up`), and
announces and concludes its attempts to commit (`KeyAttempts`), which also find a commit that was made
meanwhile. A clean-up maintains the records (`maintain_keys`).
"""

from airflow_provider_lancens.spark.keys.key_attempts import KeyAttempts
from airflow_provider_lancens.spark.keys.key_index import FOLDERS, record_restores
from airflow_provider_lancens.spark.keys.key_lookup import KeyLookup, confirm_unknown, is_used, look_up
from airflow_provider_lancens.spark.keys.key_maintenance import maintain_keys
from airflow_provider_lancens.spark.keys.key_records import unique_key
from airflow_provider_lancens.spark.keys.keyed_commit import (
    IDEMPOTENCY_KEY,
    REPEATING,
    Counts,
    KeyedCommit,
    KeyedWrite,
    key_of,
)

__all__ = [
    "FOLDERS",
    "IDEMPOTENCY_KEY",
    "REPEATING",
    "Counts",
    "KeyAttempts",
    "KeyLookup",
    "KeyedCommit",
    "KeyedWrite",
    "confirm_unknown",
    "is_used",
    "key_of",
    "look_up",
    "maintain_keys",
    "record_restores",
    "unique_key",
]
