"""Records of idempotency keys: what was committed under a key, at any age of the table.

The other packages use what is exported here: a write looks its key up before any work (`look_up`), and
announces and concludes its attempts to commit (`KeyAttempts`), which also find a commit that was made
meanwhile. A clean-up maintains the records (`maintain_keys`).
"""

from airflow_provider_lancens.spark.keys.key_attempts import KeyAttempts
from airflow_provider_lancens.spark.keys.key_lookup import (
    KeyLookup,
    accept_lost,
    confirm_unknown,
    is_used,
    look_up,
)
from airflow_provider_lancens.spark.keys.key_maintenance import maintain_keys
from airflow_provider_lancens.spark.keys.key_records import (
    APPEND,
    DELETION,
    FOLDERS,
    IDEMPOTENCY_KEY,
    OVERWRITE,
    REPEATING,
    REPLACE_VALUES,
    REPLACE_WHERE,
    REPLACEMENT,
    REPLACING_ALL,
    RESTORE,
    UPSERT,
    Counts,
    KeyedCommit,
    KeyedWrite,
    key_of,
    operation_of,
    unique_key,
)

__all__ = [
    "APPEND",
    "DELETION",
    "FOLDERS",
    "IDEMPOTENCY_KEY",
    "OVERWRITE",
    "REPEATING",
    "REPLACEMENT",
    "REPLACE_VALUES",
    "REPLACE_WHERE",
    "REPLACING_ALL",
    "RESTORE",
    "UPSERT",
    "Counts",
    "KeyAttempts",
    "KeyLookup",
    "KeyedCommit",
    "KeyedWrite",
    "accept_lost",
    "confirm_unknown",
    "is_used",
    "key_of",
    "look_up",
    "maintain_keys",
    "operation_of",
    "unique_key",
]
