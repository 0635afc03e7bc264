"""What other clients do by pylance, as steps of a history."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa

from airflow_provider_lancens.spark.maintenance.table_state import has_old_values
from tests.histories.model import TYPES, State
from tests.histories.own_steps import BASE, INDEX_TYPES, Step
from tests.histories.values import condition, value
from tests.histories.work import Work
from tests.support.indices import build_index

_KINDS = {one.replace("_", ""): one for kinds in INDEX_TYPES.values() for one in kinds}
"""The types of indices, as Lance describes them."""


def foreign_append(work: Work, chance: random.Random) -> State:
    """Append rows."""
    rows = work.rows(chance, work.state.columns)
    data = work.arrow(rows, work.state.columns)
    work.note("lance.write_dataset", "rows", mode="append")
    work.table.commit_as_another_client(data)
    return work.state.with_rows([*work.state.rows, *rows])


def foreign_merge(work: Work, chance: random.Random) -> State:
    """Merge rows, perhaps with some of the columns alone."""
    key, *others = work.state.columns
    columns = (key, *others)
    if chance.random() < 0.4:
        columns = (key, *(one for one in others if chance.random() < 0.5))
    rows = work.rows_of_keys(chance, columns)
    inserts = len(columns) == len(work.state.columns) and chance.random() < 0.7
    data = work.arrow(rows, columns)
    insert = ".when_not_matched_insert_all()" if inserts else ""
    work.note(f"dataset.merge_insert({key.name!r}).when_matched_update_all(){insert}.execute", "rows")
    merge = work.table.open().merge_insert(key.name).when_matched_update_all()
    if inserts:
        merge = merge.when_not_matched_insert_all()
    merge.execute(data)
    new = {row[key.number]: row for row in rows}
    present = {row.get(key.number) for row in work.state.rows}
    kept = [{**row, **new[row[key.number]]} if row.get(key.number) in new else row for row in work.state.rows]
    added = [row for number, row in new.items() if number not in present] if inserts else []
    return work.state.with_rows([*kept, *added])


def foreign_update(work: Work, chance: random.Random) -> State | None:
    """Update a column of the rows that match."""
    columns = [one for one in work.state.of_types("int", "string", "double") if one != work.state.columns[0]]
    if not columns:
        return None
    column = chance.choice(columns)
    new = None
    while new is None:
        new = value(chance, column.type)
    where = condition(chance, work.state)
    updates = {column.name: f"'{new}'" if column.type == "string" else repr(new)}
    work.note("dataset.update", updates, where=where.text)
    work.table.open().update(updates, where=where.text)
    return work.state.with_rows(
        {**row, column.number: new} if where.matches(row) else row for row in work.state.rows
    )


def foreign_delete(work: Work, chance: random.Random) -> State:
    """Delete the rows that match."""
    where = condition(chance, work.state)
    work.note("dataset.delete", where.text)
    work.table.open().delete(where.text)
    return work.state.with_rows(row for row in work.state.rows if not where.matches(row))


def foreign_restore(work: Work, chance: random.Random) -> State:
    """Restore a version."""
    version = chance.choice(work.known_versions())
    work.note(f"dataset.checkout_version({version}).restore")
    work.table.open(version).restore()
    return work.model.states[version]


def foreign_compact(work: Work, _: random.Random) -> State:
    """Compact."""
    work.note("dataset.optimize.compact_files")
    work.table.open().optimize.compact_files()
    return work.state


def foreign_optimize(work: Work, chance: random.Random) -> State:
    """Extend or merge the indices; those that find old values then are told, and built anew."""
    merged = chance.choice((0, 1, 10))
    work.note("dataset.optimize.optimize_indices", num_indices_to_merge=merged)
    work.table.open().optimize.optimize_indices(num_indices_to_merge=merged)
    dataset = work.table.open()
    for one in dataset.describe_indices():
        if has_old_values(dataset, one):
            column, kind = one.field_names[0], _KINDS[one.index_type.upper()]
            work.note("build_index", column, kind, name=one.name, if_exists="extend")
            build_index(
                *(work.table.spark, work.table.namespace, work.table.id, column, kind),
                name=one.name,
                if_exists="extend",
            )
    return work.state


def foreign_index(work: Work, chance: random.Random) -> State | None:
    """Build a scalar index."""
    column = chance.choice([one for one in work.state.columns if one.type != "vector"])
    kind = chance.choice(INDEX_TYPES[column.type])
    name = f"{column.name}_{kind.lower()}"
    work.note("dataset.create_scalar_index", column.name, kind, name=name, replace=True)
    dataset: Any = work.table.open()
    dataset.create_scalar_index(column.name, kind, name=name, replace=True)
    return work.state


def foreign_clean_up(work: Work, chance: random.Random) -> State:
    """Clean up all versions but the newest and the tagged ones."""
    keep = chance.choice((1, 3, 6))
    work.note("dataset.cleanup_old_versions", retain_versions=keep)
    work.table.open().cleanup_old_versions(
        older_than=timedelta(0), retain_versions=keep, error_if_tagged_old_versions=False
    )
    return work.state


def foreign_tag(work: Work, chance: random.Random) -> State:
    """Set a tag, or delete it."""
    name = chance.choice(("a", "b"))
    tags = work.table.open().tags
    if name in work.model.tags and chance.random() < 0.3:
        work.note("dataset.tags.delete", name)
        tags.delete(name)
        del work.model.tags[name]
        return work.state
    version = chance.choice(work.known_versions())
    change: Callable[[str, int], Any] = tags.update if name in work.model.tags else tags.create
    work.note(f"dataset.tags.{change.__name__}", name, version)
    change(name, version)
    work.model.tags[name] = version
    return work.state


def foreign_rename(work: Work, chance: random.Random) -> State | None:
    """Rename a column."""
    columns = list(work.state.columns)
    free = [name for name in BASE if name not in dict(work.state.schema)]
    if len(columns) < 2 or not free:
        return None
    position = chance.randrange(1, len(columns))
    old, new = columns[position], chance.choice(free)
    work.note("dataset.alter_columns", {"path": old.name, "name": new})
    work.table.open().alter_columns({"path": old.name, "name": new})
    columns[position] = replace(old, name=new)
    return work.state.with_columns(columns)


def foreign_cast(work: Work, chance: random.Random) -> State | None:
    """Cast a column of numbers."""
    columns = list(work.state.columns)
    fitting = [position for position, one in enumerate(columns[1:], 1) if one.type in ("int", "bigint")]
    if not fitting:
        return None
    position = chance.choice(fitting)
    old = columns[position]
    kind = "bigint" if old.type == "int" else "int"
    work.note("dataset.alter_columns", {"path": old.name, "data_type": kind})
    work.table.open().alter_columns({"path": old.name, "data_type": TYPES[kind]})
    columns[position] = replace(old, type=kind)
    return work.state.with_columns(columns)


def foreign_drop(work: Work, chance: random.Random) -> State | None:
    """Drop a column."""
    columns = list(work.state.columns)
    if len(columns) < 3:
        return None
    dropped = columns.pop(chance.randrange(1, len(columns)))
    work.note("dataset.drop_columns", [dropped.name])
    work.table.open().drop_columns([dropped.name])
    return work.state.with_columns(columns)


def foreign_add(work: Work, chance: random.Random) -> State | None:
    """Add a column by an expression."""
    free = [name for name in ("d1", "d2") if name not in dict(work.state.schema)]
    sources = work.state.of_types("string")
    if not free or not sources:
        return None
    source, added = chance.choice(sources), work.model.new_column(chance.choice(free), "string")
    work.note("dataset.add_columns", {added.name: f"upper({source.name})"})
    work.table.open().add_columns({added.name: f"upper({source.name})"})
    return State((*work.state.columns, added), ()).with_rows(
        {**row, added.number: _upper(row.get(source.number))} for row in work.state.rows
    )


def foreign_replace(work: Work, chance: random.Random) -> State | None:
    """Replace the values of a column in a fragment, without updating its rows to Lance."""
    dataset = work.table.open()
    columns = work.state.of_types("double")
    if not columns or not dataset.get_fragments():
        return None
    column, fragment = chance.choice(columns), chance.choice(dataset.get_fragments())
    keys = work.state.columns[0]
    read = fragment.scanner(columns=[keys.name], with_row_id=True).to_table()
    chosen = set(read[keys.name].to_pylist())
    if sum(row.get(keys.number) in chosen for row in work.state.rows) > read.num_rows:
        return None  # rows of other fragments couldn't be told from these
    new = chance.randrange(8) / 2
    values = pa.table({"_rowid": read["_rowid"], column.name: pa.array([new] * read.num_rows, pa.float64())})
    work.note(f"{column.name} = {new} in fragment {fragment.fragment_id} by update_columns")
    updated, fields = fragment.update_columns(values, left_on="_rowid", right_on="_rowid")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version, **work.table.authority)
    return work.state.with_rows(
        {**row, column.number: new} if row.get(keys.number) in chosen else row for row in work.state.rows
    )


def foreign_lose_versions(work: Work, _: random.Random) -> State | None:
    """Commit all fragments without the versions of their rows, as lance-spark 0.4.0 does."""
    dataset = work.table.open()
    if not work.stable or not dataset.get_fragments():
        return None
    work.note("lance.LanceDataset.commit", "fragments without the versions of their rows")
    fragments = [
        replace(one.metadata, created_at_version_meta=None, last_updated_at_version_meta=None)
        for one in dataset.get_fragments()
    ]
    operation = lance.LanceOperation.Update([], fragments, [])
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version, **work.table.authority)
    return work.state


def _upper(value: Any) -> Any:
    return None if value is None else value.upper()


FOREIGN: dict[Step, int] = {
    foreign_append: 1,
    foreign_merge: 3,
    foreign_update: 2,
    foreign_delete: 1,
    foreign_restore: 1,
    foreign_compact: 1,
    foreign_optimize: 1,
    foreign_index: 1,
    foreign_clean_up: 1,
    foreign_tag: 1,
    foreign_rename: 1,
    foreign_cast: 1,
    foreign_drop: 1,
    foreign_add: 1,
    foreign_replace: 1,
    foreign_lose_versions: 1,
}
"""The steps, and how often they are drawn."""
