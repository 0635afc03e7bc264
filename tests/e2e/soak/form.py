"""The soak test's size, and the settings by which its DAGs and processes find what they use."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOUR = 3600
GROUPS = 5
TABLES_IN_GROUP = 10
WAITS_OF_TABLE = 10
COMMITS_A_MINUTE = 60
VERSIONS_BETWEEN_WAITS = 7
"""So that two cores have time for the wake-ups, of which each one starts two tasks: nine a minute."""
MAINTENANCE_SECONDS = 144
"""Between two pairs of tables: each table once an hour."""


@dataclass(frozen=True)
class Form:
    """How long the test takes, and what that implies; shorter forms have fewer waits."""

    seconds: float = HOUR
    poll_interval: float = 10
    """Seconds between two polls of a wait."""
    polls: int = 3
    """Polls within which each wait must wake up."""

    @classmethod
    def chosen(cls) -> "Form":
        """That of `LANCENS_SOAK_SECONDS`, by default the hour."""
        return cls(float(os.environ.get("LANCENS_SOAK_SECONDS") or HOUR))

    @property
    def groups(self) -> list[list[str]]:
        """The tables' identifiers by database. Every other table's version authority is the metastore."""
        return [[f"soak_{group}$t_{number}" for number in range(TABLES_IN_GROUP)] for group in range(GROUPS)]

    @property
    def tables(self) -> list[str]:
        """All of them, in the order of the commits."""
        return [table for group in self.groups for table in group]

    @property
    def waits_of_table(self) -> int:
        """At any time."""
        return max(1, min(WAITS_OF_TABLE, round(WAITS_OF_TABLE * self.seconds / HOUR)))

    @property
    def waits(self) -> int:
        """Of all tables."""
        return self.waits_of_table * len(self.tables)

    @property
    def versions_between(self) -> int:
        """Versions from one of a table's waits to the next."""
        return VERSIONS_BETWEEN_WAITS if self.waits_of_table > 1 else 3

    @property
    def patience(self) -> float:
        """Seconds within which a wait must wake up."""
        return self.polls * self.poll_interval

    @property
    def window(self) -> float:
        """Seconds at the beginning that aren't judged, and the length of the periods that are compared."""
        return min(600, self.seconds / 4)

    @property
    def is_long(self) -> bool:
        """Whether memory and the number of waits are judged: caches take minutes to reach their size."""
        return self.seconds >= HOUR / 2

    def environment(self, uri: str, root: Path) -> dict[str, str]:
        """The environment variables of Airflow's processes."""
        connection: dict[str, Any] = {"conn_type": "lance_hive2", "host": uri, "extra": {"root": str(root)}}
        return {
            "AIRFLOW_CONN_LAKE": json.dumps(connection),
            "LANCE_TEST_POLL": str(self.poll_interval),
            "LANCE_TEST_TABLES": json.dumps(self.tables),
            "LANCE_TEST_MAINTENANCE_SECONDS": str(MAINTENANCE_SECONDS),
        }


def is_managed(table: str) -> bool:
    """Whether the metastore is a table's version authority."""
    return int(table.rpartition("_")[2]) % 2 == 0
