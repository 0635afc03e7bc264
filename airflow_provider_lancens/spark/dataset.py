"""A data set at its versions: all that an executor needs to know of a table. It pickles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace


@dataclass(frozen=True, slots=True)
class Decider:
    """The namespace that decides the versions of a managed table; it has to pickle."""

    namespace: LanceNamespace
    table_id: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """Where a data set lies, and with which options it is reached; no repr shows the options."""

    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    decider: Decider | None = field(default=None, repr=False)
    """Who knows the versions of a managed table: what lies in its folder need not be committed."""

    def open(self, version: int) -> LanceDataset:
        """Open it at exactly this version.

        Raises:
            ValueError: that version isn't there.
        """
        # Slow to load, and a driver that only finds an earlier commit should not wait for more.
        import lance

        options = dict(self.storage_options)
        if self.decider is None:
            return lance.dataset(self.location, version=version, storage_options=options)
        return lance.dataset(
            namespace_client=self.decider.namespace,
            table_id=list(self.decider.table_id),
            version=version,
            storage_options=options,
        )
