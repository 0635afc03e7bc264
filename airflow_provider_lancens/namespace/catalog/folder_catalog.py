"""Tables of a folder's catalog (``impl=dir``): by which folder or entry each of them exists.

pylance's implementation keeps entries of tables in the dataset ``<root>/__manifest``. Tables in namespaces
exist by them. A table of the topmost level exists by its folder, ``<root>/<name>.lance``, whichever client
wrote that, and its entry has no effect: an entry that points elsewhere doesn't make such a table exist, and
its removal doesn't make one disappear, although the implementation reports success.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.catalog.catalog_errors import CAPABILITIES
from airflow_provider_lancens.namespace.locations import (
    TABLE_SUFFIX,
    is_local,
    join,
    normalize,
    shown_location,
)
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation
from airflow_provider_lancens.redaction import redact

MARKERS = frozenset({".lance-reserved", ".lance-deregistered"})
"""Files by which the implementation marks tables that are declared or deregistered."""
_ENTRIES = "__manifest"
_LISTS_FOLDERS = "dir_listing_enabled"
_HAS_ENTRIES = "manifest_enabled"
_ENTRIES_FIRST = "dir_listing_to_manifest_migration_enabled"
_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off"})


@dataclass(frozen=True, slots=True)
class FolderCatalog:
    """Where a folder's catalog has its tables."""

    root: str
    lists_folders: bool
    """Whether folders are tables of the topmost level."""
    has_entries: bool
    """Whether there are entries of tables."""
    entries_first: bool
    """Whether the entry of a table of the topmost level counts, if it has one."""

    @classmethod
    def of(cls, root: str, properties: Mapping[str, str]) -> Self:
        """Return the catalog that the implementation opens.

        Args:
            root: its root.
            properties: the implementation's own.
        """
        given = {name: value.lower() for name, value in properties.items()}
        has_entries = given.get(_HAS_ENTRIES) not in _FALSE
        return cls(
            normalize(root).rstrip("/"),
            lists_folders=given.get(_LISTS_FOLDERS) not in _FALSE or not has_entries,
            has_entries=has_entries,
            entries_first=has_entries and given.get(_ENTRIES_FIRST) in _TRUE,
        )

    def own_folder(self, parts: Sequence[str]) -> str | None:
        """Return the folder by which a table of the topmost level exists; None for a table with an entry."""
        if len(parts) != 1 or not self.lists_folders:
            return None
        return join(self.root, f"{parts[0]}{TABLE_SUFFIX}")

    def is_folder(self, parts: Sequence[str], location: str) -> bool:
        """Return whether a table exists by its folder.

        Args:
            parts: the levels of its identifier.
            location: its location, as described.
        """
        plain = normalize(location).rstrip("/")
        own = self.own_folder(parts)
        return plain == own or (not is_local(plain) and unquote(plain) == own)  # entries are encoded

    def relative(self, location: str) -> str:
        """Return a location as the implementation registers it, relative to the root.

        Raises:
            InvalidInputError: (13) it isn't below the root, or overlaps the catalog's own entries.
        """
        if not location.startswith(f"{self.root}/"):
            raise spec_errors.InvalidInputError(
                f"location={location!r}: impl=dir registers data below its root alone, {redact(self.root)}"
            )
        self.check_data(location, f"location={location!r}")
        return location.removeprefix(f"{self.root}/")

    def check_data(self, location: str, subject: str) -> None:
        """Check that a location doesn't overlap the location of the catalog's own entries.

        Args:
            location: the location of a table.
            subject: what has it, for messages.

        Raises:
            InvalidInputError: (13) it does.
        """
        entries = join(self.root, _ENTRIES)
        if ResolvedLocation(location).overlaps(ResolvedLocation(entries)):
            raise spec_errors.InvalidInputError(
                f"{subject}: {redact(entries)} has the entries of the catalog, and is not data of a table"
            )

    def certain_location(self, parts: Sequence[str]) -> str | None:
        """Return the location of a table if it follows from its identifier, else None."""
        return None if self.entries_first else self.own_folder(parts)

    def check_registration(self, parts: Sequence[str], location: str, *, exists: bool) -> None:
        """Check that a registration has an effect.

        Args:
            parts: the levels of the table's identifier.
            location: the location of the data.
            exists: whether there is such a table.

        Raises:
            TableAlreadyExistsError: (5) there is a table of the topmost level whose folder is another one.
            InvalidInputError: (13) there is none, and the data isn't in its folder.
        """
        own = self.certain_location(parts)
        is_own = self.is_folder(parts, location)
        if own is None or not self.has_entries or (exists and is_own):
            return
        name, shown = parts[0], shown_location(redact(own))
        if exists:
            raise spec_errors.TableAlreadyExistsError(f"table {name!r} already exists, at {shown}")
        if is_own:
            raise spec_errors.InvalidInputError(
                f"table {name!r} can't be registered: its folder {shown} doesn't exist, or has no files"
            )
        raise spec_errors.InvalidInputError(
            f"table {name!r} can't be registered at location={location!r}: impl=dir knows a table of "
            f"the topmost level by its folder alone, {shown}; rename the folder of the data to it, which "
            "makes it this table, or register the data in a namespace"
        )

    def check_not_deregistered(self, parts: Sequence[str]) -> None:
        """Check that a table doesn't exist because it was deregistered, which only a marker says.

        Args:
            parts: the levels of its identifier.

        Raises:
            InvalidInputError: (13) it was deregistered.
        """
        own = self.own_folder(parts)
        if own is not None and not self.has_entries:
            raise spec_errors.InvalidInputError(
                f"table {parts[0]!r} was deregistered, and its folder {shown_location(redact(own))} was "
                "kept: move that away, or remove its file .lance-deregistered to have the table again"
            )

    def check_deregistration(self, parts: Sequence[str], location: str) -> None:
        """Check that a deregistration has an effect.

        Args:
            parts: the levels of the table's identifier.
            location: its location, as described.

        Raises:
            UnsupportedOperationError: (0) the table exists by its folder.
        """
        if self.has_entries and not self.entries_first and self.is_folder(parts, location):
            raise spec_errors.UnsupportedOperationError(
                f"deregistering table {parts[0]!r} is not supported by this catalog, impl=dir: a table of "
                f"the topmost level exists as long as its folder, {shown_location(redact(location))}; "
                "instead: rename the folder, which renames the table, or move it out of the root; or drop "
                f"the table, which deletes its data; see {CAPABILITIES}"
            )
