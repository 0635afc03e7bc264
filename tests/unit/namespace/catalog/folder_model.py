"""Random changes of a folder's catalog and of the files in it, compared after each step with a plain model.

The model has the files on disk and the entries of tables in namespaces, and knows three rules: a table of the
topmost level exists by its folder, a drop deletes files of the dataset at the table's location alone, and no
table is dropped whose files another one has.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

import lance
import pyarrow as pa
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.namespace import CatalogNamespace

OK, UNSUPPORTED, NOT_FOUND, EXISTS, INVALID = None, 0, 4, 5, 13
NAMESPACES = ("", "s", "t")
TABLES = (("a",), ("b c",), ("s", "x"), ("s", "y"), ("t", "x"))
PLACES = (
    "a.lance",
    "b c.lance",
    "a.lance/inner.lance",
    "plain",
    "plain/data/x.lance",
    "sub/t.lance",
    "sub/sp ace%20/ü",
)
"""Where datasets of other clients are made, and registered."""
PROPERTIES = {
    "folders": {},
    "entries": {"property.dir_listing_enabled": "false"},
    "both": {"property.dir_listing_to_manifest_migration_enabled": "true"},
}
MARKER = ".lance-reserved"
LANCE_FOLDERS = ("_versions", "data", "_transactions")
Id = tuple[str, ...]


class FolderModel:
    """One sequence of random steps.

    Args:
        root: an empty folder.
        seed: what the steps follow from.
        mode: what makes a table of the topmost level exist: its folder alone (``folders``), an entry alone
            (``entries``), or an entry, and without one its folder (``both``).
    """

    def __init__(self, root: Path, seed: int, mode: str) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.mode = mode
        self.namespace = CatalogNamespace(root=str(root), **PROPERTIES[mode])
        for name in NAMESPACES[1:]:
            self.namespace.create_namespace({"id": [name]})
        self.entries: dict[Id, str] = {}
        self.rows: dict[str, int] = {}
        """Number of rows by the folder of a dataset."""
        self.files: set[str] = set()
        self.done: list[str] = []
        """The steps, for messages."""
        self.changes = [self.declare, self.register, self.deregister, self.write_beside, self.remove_folder]
        self.changes += [self.drop, self.write] * 2

    def step(self) -> None:
        """Make a random change, and compare everything with the model."""
        self.random.choice(self.changes)()
        self.compare()

    def declare(self) -> None:
        table = self.random.choice(TABLES)
        code = EXISTS if self.location(table) is not None else OK
        declared = self.call(code, "declare_table", table)
        if declared is not None:
            place = self.relative(declared.location)
            assert place == self.own_folder(table) or "/" not in place, self.done
            self.files.add(f"{place}/{MARKER}")
            if self.has_entry(table):
                self.entries[table] = place

    def register(self) -> None:
        table, place = self.random.choice(TABLES), self.random.choice((*PLACES, "__manifest", "sub"))
        code = OK
        if place == "__manifest":
            code = INVALID
        elif table in self.entries or (self.location(table) is not None and not self.has_entry(table)):
            code = EXISTS
        elif not self.has_entry(table):
            code = INVALID
        if code == EXISTS and place == self.own_folder(table):
            return  # done or refused (5), as the entry has it, without any effect
        if self.call(code, "register_table", table, location=f"{self.root}/{place}") is not None:
            self.entries[table] = place

    def deregister(self) -> None:
        table = self.random.choice(TABLES)
        code = OK
        if self.location(table) is None or (table not in self.entries and self.has_entry(table)):
            code = NOT_FOUND
        elif self.by_folder(table) and self.below(self.own_folder(table)):
            code = UNSUPPORTED
        self.call(code, "deregister_table", table)
        if code is OK or self.has_entry(table):
            self.entries.pop(table, None)

    def drop(self) -> None:
        table = self.random.choice(TABLES)
        place = self.location(table)
        own = set() if place is None else self.files_of(place)
        others = set() if place is None else self.below(place) - own
        code = OK
        if place is None:
            code = NOT_FOUND
        elif self.is_shared(table, place) or (self.by_folder(table) and others):
            code = INVALID
        plan = self.call(code, "plan_drop_table", table)
        if plan is not None:
            assert (plan.files, plan.other_files) == (len(own), len(others)), self.done
        self.compare()
        if self.call(code, "drop_table", table) is not None and place is not None:
            self.entries.pop(table, None)
            self.files -= own
            if own:
                self.rows.pop(place, None)

    def write(self) -> None:
        table = self.random.choice(TABLES)
        place = self.location(table) or self.random.choice(PLACES)
        self.done.append(f"write {place!r}")
        lance.write_dataset(pa.table({"n": [1]}), self.root / place, mode="append")
        self.rows[place] = self.rows.get(place, 0) + 1
        self.files |= {
            file for file in self.on_disk() if PurePosixPath(file).parent.parent == PurePosixPath(place)
        }

    def write_beside(self) -> None:
        place = self.random.choice((*PLACES, *self.entries.values()))
        path = f"{place}/{self.random.choice(('README.txt', 'data/notes.txt', '_versions/old.txt'))}"
        self.done.append(f"foreign {path!r}")
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text("mine")
        self.files.add(path)

    def remove_folder(self) -> None:
        place = self.random.choice((*PLACES, *self.entries.values()))
        self.done.append(f"remove {place!r}")
        shutil.rmtree(self.root / place, ignore_errors=True)
        self.files -= self.below(place)
        self.rows = {at: rows for at, rows in self.rows.items() if not is_below(at, place)}
        for folder in (self.root / place).parents:  # an empty folder is none, on an object store
            if folder == self.root or not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()

    def compare(self) -> None:
        """Compare tables, locations, rows and files with the model."""
        assert self.on_disk() == self.files, self.done
        for name in NAMESPACES:
            parts = (name,) if name else ()
            listed = self.namespace.list_tables({"id": list(parts)}).tables
            known = {
                table[-1] for table in TABLES if table[:-1] == parts and self.location(table) is not None
            }
            assert set(listed) == known, self.done
        for table in TABLES:
            place = self.location(table)
            described = self.call(
                OK if place is not None else NOT_FOUND, "describe_table", table, is_step=False
            )
            if described is None or place is None:
                continue
            assert self.relative(described.location) == place, self.done
            if place in self.rows:
                assert lance.dataset(described.location).count_rows() == self.rows[place], self.done

    def call(
        self, code: int | None, operation: str, table: Id, *, is_step: bool = True, **fields: Any
    ) -> Any:
        """Call an operation, and return its response, or None if it is refused with the expected code."""
        if is_step:
            self.done.append(f"{operation} {'.'.join(table)} {fields or ''}: {code}")
        found, response = OK, None
        try:
            response = getattr(self.namespace, operation)({"id": list(table), **fields})
        except LanceNamespaceError as error:
            found = int(error.code)
        assert found == code, self.done
        return response

    def location(self, table: Id) -> str | None:
        """Return the location of a table, relative to the root; None if there is no such table."""
        own = self.own_folder(table)
        if table in self.entries or not self.may_be_folder(table):
            return self.entries.get(table)
        return own if self.below(own) else None

    def has_entry(self, table: Id) -> bool:
        """Return whether an entry of a table counts, if it has one."""
        return self.mode != "folders" or len(table) > 1

    def may_be_folder(self, table: Id) -> bool:
        return self.mode != "entries" and len(table) == 1

    def by_folder(self, table: Id) -> bool:
        """Return whether a table exists as long as its folder."""
        return self.may_be_folder(table) and self.location(table) == self.own_folder(table)

    def own_folder(self, table: Id) -> str:
        return f"{table[-1]}.lance"

    def is_shared(self, table: Id, place: str) -> bool:
        """Return whether another table has the place, a part of it, or a folder around it."""
        others = [self.location(other) for other in TABLES if other != table]
        return any(
            other is not None and (is_below(other, place) or is_below(place, other)) for other in others
        )

    def below(self, place: str) -> set[str]:
        return {file for file in self.files if is_below(file, place)}

    def files_of(self, place: str) -> set[str]:
        """Return the files of the dataset at a place, and its marker."""
        marker = f"{place}/{MARKER}"
        if place not in self.rows and marker not in self.files:
            return set()
        own = {f"{place}/{folder}" for folder in LANCE_FOLDERS}
        return {
            file
            for file in self.below(place)
            if file == marker or (str(PurePosixPath(file).parent) in own and not file.endswith(".txt"))
        }

    def on_disk(self) -> set[str]:
        files = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        return {str(path) for path in files if path.parts[0] != "__manifest"}

    def relative(self, location: str) -> str:
        return str(Path(location).relative_to(self.root))


def is_below(path: str, place: str) -> bool:
    """Return whether a path is a place or below it."""
    return PurePosixPath(path).is_relative_to(place)
