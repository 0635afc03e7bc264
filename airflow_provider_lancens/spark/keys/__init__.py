"""Records of idempotency keys: what was committed under a key, at any age of the table.

The other packages use what is exported here: a write looks its key up before any work (`look_up`), and
announces and concludes its attempts to commit (`KeyAttempts`), which also find a commit that was made
meanwhile, such as one whose reply was lost. A clean-up maintains the records (`maintain_keys`).
"""

from airflow_provider_lancens.spark.keys.key_attempts import KeyAttempts
from airflow_provider_lancens.spark.keys.key_expiry import maintain_keys
from airflow_provider_lancens.spark.keys.key_lookup import (
    REPEATING,
    KeyedWrite,
    KeyLookup,
    accept_lost_keys,
    confirm_write,
    find_write,
    is_used,
    look_up,
)
from airflow_provider_lancens.spark.keys.key_records import FOLDERS
from airflow_provider_lancens.spark.keys.key_search import recorded_commits
from airflow_provider_lancens.spark.keys.keyed_commit import (
    APPEND,
    DELETION,
    IDEMPOTENCY_KEY,
    OVERWRITE,
    REDONE_APPEND,
    REPLACE_VALUES,
    REPLACE_WHERE,
    RESTORE,
    UPSERT,
    Counts,
    KeyedCommit,
    key_of,
    operation_of,
    operation_of_kind,
    unique_key,
)

__all__ = [
    "APPEND",
    "DELETION",
    "FOLDERS",
    "IDEMPOTENCY_KEY",
    "OVERWRITE",
    "REDONE_APPEND",
    "REPEATING",
    "REPLACE_VALUES",
    "REPLACE_WHERE",
    "RESTORE",
    "UPSERT",
    "Counts",
    "KeyAttempts",
    "KeyLookup",
    "KeyedCommit",
    "KeyedWrite",
    "accept_lost_keys",
    "confirm_write",
    "find_write",
    "is_used",
    "key_of",
    "look_up",
    "maintain_keys",
    "operation_of",
    "operation_of_kind",
    "recorded_commits",
    "unique_key",
]
