"""The package's own verbs as steps of a history, each with what the model says of it."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.identifiers import staged_number
from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.compute.compute_column import compute_column
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from airflow_provider_lancens.spark.publish import discard_version, publish_version
from airflow_provider_lancens.spark.schema import add_columns, alter_columns, drop_columns
from tests.histories.checks import MismatchError
from tests.histories.model import NUMBERS, Column, Row, State
from tests.histories.values import Condition, condition
from tests.histories.work import Staged, Work
from tests.support.bookmarks import delete_bookmark, move_bookmark
from tests.support.indices import build_index
from tests.support.writes import write_files, write_table

Step = Callable[[Work, random.Random], State | None]
"""Changes the table, and returns what it has to be; None if nothing could be done."""

BASE = {
    "id": "bigint",
    "s": "string",
    "n": "int",
    "x": "double",
    "tags": "array",
    "vec": "vector",
    "day": "date",
    "moment": "timestamp",
    "wall": "timestamp_ntz",
}
_KEYS = ("bigint", "bigint", "date", "timestamp", "timestamp_ntz")
_ADDED = ("int", "string", "double", "date", "timestamp", "timestamp_ntz")
_COMPARED = ("int", "string", "double", "date", "timestamp", "timestamp_ntz")
_NAMES = ("c1", "c2", "c3")
INDEX_TYPES = {
    "int": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"),
    "bigint": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"),
    "double": ("BTREE", "BITMAP", "ZONEMAP"),
    "string": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM", "INVERTED"),
    "date": ("BTREE", "BITMAP", "ZONEMAP"),
    "timestamp": ("BTREE", "BITMAP", "ZONEMAP"),
    "timestamp_ntz": ("BTREE", "BITMAP", "ZONEMAP"),
    "array": ("LABEL_LIST",),
    "vector": ("IVF_FLAT",),
}


def first_write(work: Work, chance: random.Random) -> State:
    """Write the first version."""
    kinds = BASE | {"id": chance.choice(_KEYS)}
    columns = tuple(work.model.new_column(name, kind) for name, kind in kinds.items())
    rows = tuple(row for _ in range(3) for row in work.rows(chance, columns))
    state = State(columns, rows)
    options = TableLayout(
        max_rows_per_file=chance.choice((3, 6, 1000)),
        stable_row_ids=work.stable,
        vector_columns={"vec": 2},
    )
    _write(work, chance, rows, columns, options=options)
    return state


def append(work: Work, chance: random.Random) -> State:
    """Append a DataFrame."""
    rows = work.rows(chance, work.state.columns)
    _write(work, chance, rows, work.state.columns)
    return _added(work.state, rows)


def append_dates(work: Work, chance: random.Random) -> State | None:
    """Append dates to a column of times, which are midnight in the session's time zone."""
    times = [one for one in work.state.of_types("timestamp") if one != _key(work)]
    if not times or not work.table.has_spark:
        return None
    column = chance.choice(times)
    columns = [replace(one, type="date") if one == column else one for one in work.state.columns]
    rows = work.rows(chance, columns)
    _write(work, chance, rows, columns)
    zone = ZoneInfo(work.table.zone)
    return _added(work.state, [{**row, column.number: _midnight(row[column.number], zone)} for row in rows])


def append_files(work: Work, chance: random.Random) -> State:
    """Append a file."""
    rows = work.rows(chance, work.state.columns)
    data = work.arrow(rows, work.state.columns)
    work.note("write_files", "rows")
    write_files(work.table.spark, work.table.file(data), work.table.namespace, work.table.id)
    return _added(work.state, rows)


def append_merged(work: Work, chance: random.Random) -> State | None:
    """Append rows with one more column and perhaps one less."""
    if (added := _new_column(work, chance)) is None:
        return None
    columns = [*work.state.columns, added]
    if chance.random() < 0.5:
        columns.pop(chance.randrange(1, len(columns) - 1) if len(columns) > 2 else 1)
    rows = work.rows(chance, columns)
    _write(work, chance, rows, columns, schema_mode="merge")
    return _added(
        work.state.with_columns([*work.state.columns, *columns[-1:]] if added in columns else []), rows
    )


def overwrite(work: Work, chance: random.Random) -> State | None:
    """Replace all rows, and perhaps the columns."""
    columns = list(work.state.columns)
    named: dict[str, Any] = {"mode": "overwrite"}
    if chance.random() < 0.4 and len(columns) > 2:
        dropped = columns.pop(chance.randrange(1, len(columns)))
        work.script.append(f"# without {dropped.name}")
        named["schema_mode"] = "overwrite"
        if chance.random() < 0.5 and (added := _new_column(work, chance)) is not None:
            columns.append(added)
    rows = work.rows(chance, columns)
    _write(work, chance, rows, columns, vectors=True, **named)
    return State(tuple(columns), rows)


def replace_where(work: Work, chance: random.Random) -> State:
    """Replace the rows that match a condition."""
    replaced = _simple(work, chance)
    rows = tuple(one for one in work.rows(chance, work.state.columns, 20) if replaced.matches(one))
    _write(work, chance, rows, work.state.columns, mode="overwrite", where=replaced.text)
    return _added(_without(work.state, replaced), rows)


def upsert(work: Work, chance: random.Random) -> State:
    """Upsert whole rows."""
    rows = work.rows_of_keys(chance, work.state.columns)
    _write(work, chance, rows, work.state.columns, mode="upsert", on=[_key(work).name])
    return _upserted(work.state, rows)


def upsert_files(work: Work, chance: random.Random) -> State:
    """Upsert the rows of a file."""
    rows = work.rows_of_keys(chance, work.state.columns)
    data = work.arrow(rows, work.state.columns)
    named = {"mode": "upsert", "on": [_key(work).name]}
    work.note("write_files", "rows", **named)
    write_files(work.table.spark, work.table.file(data), work.table.namespace, work.table.id, **named)
    return _upserted(work.state, rows)


def upsert_merged(work: Work, chance: random.Random) -> State | None:
    """Upsert rows with one more column."""
    if (added := _new_column(work, chance)) is None:
        return None
    columns = [*work.state.columns, added]
    rows = work.rows_of_keys(chance, columns)
    _write(work, chance, rows, columns, mode="upsert", on=[_key(work).name], schema_mode="merge")
    return _upserted(work.state.with_columns(columns), rows)


def upsert_compared(work: Work, chance: random.Random) -> State | None:
    """Upsert rows that are compared with the table's, by Spark."""
    if not work.table.has_spark:
        return None
    rows = work.rows_of_keys(chance, work.state.columns)
    named, _, apply = _comparison(work, chance, rows)
    _write(work, chance, rows, work.state.columns, **named)
    return apply(work.state)


def _comparison(
    work: Work, chance: random.Random, rows: Sequence[Row]
) -> tuple[dict[str, Any], Sequence[Row], Callable[[State], State]]:
    """Return how rows are compared with the table's, which of them are upserted, and what that makes."""
    state, key = work.state, _key(work).number
    named: dict[str, Any] = {"mode": "upsert", "on": [_key(work).name]}
    others = [one for one in state.of_types(*_COMPARED) if one != _key(work)]
    kind = chance.choice(["keep", *(["update_columns", "sequence_by", "delete_when"] if others else [])])
    by_key = {one[key]: [other for other in state.rows if other.get(key) == one[key]] for one in rows}
    if kind == "keep" or not others:
        named["when_matched"] = "keep"
        kept = [one for one in rows if not by_key[one[key]]]
        return named, kept, lambda state: _upserted(state, kept)
    chosen = chance.choice(others)
    if kind == "sequence_by":
        named["sequence_by"] = chosen.name
        kept = [
            one
            for one in rows
            if not any(_precedes(other.get(chosen.number), one[chosen.number]) for other in by_key[one[key]])
        ]
        return named, kept, lambda state: _upserted(state, kept)
    if kind == "delete_when":
        deleted = condition(chance, replace(state, columns=(chosen,)))
        named["delete_when"] = deleted.text
        kept = [one for one in rows if not deleted.matches(one)]
        gone = {one[key] for one in rows}
        return (
            named,
            rows,
            lambda state: _added(
                state.with_rows(one for one in state.rows if one.get(key) not in gone), kept
            ),
        )
    named["update_columns"] = [chosen.name]
    kept = [
        {**by_key[one[key]][0], chosen.number: one[chosen.number]} if by_key[one[key]] else one
        for one in rows
    ]
    return named, kept, lambda state: _upserted(state, kept)


def delete(work: Work, chance: random.Random) -> State:
    """Delete the rows that match a condition."""
    deleted = _simple(work, chance)
    work.note("delete_rows", deleted.text)
    delete_rows(work.table.namespace, work.table.id, deleted.text)
    return _without(work.state, deleted)


def stage(work: Work, chance: random.Random) -> State:
    """Stage an append, an upsert, also one of compared rows, or a replacement of some rows or of all."""
    columns, key = work.state.columns, _key(work).number
    kinds = ["append", "upsert", "replace", "overwrite", *["compared"] * (3 if work.table.has_spark else 0)]
    kind = chance.choice(kinds)
    named: dict[str, Any] = {}
    matters: Callable[[Row], bool] | None = None
    apply: Callable[[State], State]
    if kind == "append":
        rows = work.rows(chance, columns)
        apply = lambda state: _added(state, rows)  # noqa: E731
    elif kind == "upsert":
        rows = work.rows_of_keys(chance, columns)
        named |= {"mode": "upsert", "on": [_key(work).name]}
        apply = lambda state: _upserted(state, rows)  # noqa: E731
    elif kind == "compared":
        rows = work.rows_of_keys(chance, columns)
        named, kept, apply = _comparison(work, chance, rows)
        keys = {one[key] for one in kept}
        matters = lambda row: row.get(key) in keys  # noqa: E731
    elif kind == "replace":
        replaced = _simple(work, chance)
        rows = tuple(one for one in work.rows(chance, columns, 20) if replaced.matches(one))
        named |= {"mode": "overwrite", "where": replaced.text}
        apply, matters = lambda state: _added(_without(state, replaced), rows), replaced.matches
    else:
        rows = work.rows(chance, columns)
        named |= {"mode": "overwrite"}
        apply, matters = lambda state: state.with_rows(rows), lambda _: True
    result = _write(work, chance, rows, columns, vectors=kind == "overwrite", stage=True, **named)
    if (number := staged_number(result.staged_version)) is not None:
        work.staged[number] = Staged(work.state, apply, matters, deletions_matter=kind != "replace")
        work.script[-1] = f"staged{len(work.script)} = {work.script[-1]}  # {number}"
    return work.state


def publish(work: Work, chance: random.Random) -> State | None:
    """Publish a staged version."""
    if not work.staged:
        return None
    version = chance.choice(list(work.staged))
    work.note("publish_version", version)
    staged = work.staged.pop(version)
    try:
        publish_version(work.table.namespace, work.table.id, version)
    except InvalidTableStateError as error:
        if "other writers" in str(error) and not staged.conflicts(work.state):
            raise MismatchError(f"nobody changed rows, but: {error}") from error
        raise
    if staged.conflicts(work.state):
        raise MismatchError(f"staged version {version} was published over what others wrote since")
    return staged.apply(work.state)


def discard(work: Work, chance: random.Random) -> State | None:
    """Discard a staged version."""
    if not work.staged:
        return None
    version = chance.choice(list(work.staged))
    work.note("discard_version", version)
    del work.staged[version]
    discard_version(work.table.namespace, work.table.id, version)
    return work.state


def restore(work: Work, chance: random.Random) -> State:
    """Restore a version."""
    version = chance.choice(work.known_versions())
    work.note("restore_version", version)
    restore_version(work.table.namespace, work.table.id, version)
    return work.model.states[version]


def compact(work: Work, _: random.Random) -> State:
    """Compact."""
    work.note("compact_table")
    compact_table(work.table.spark, work.table.namespace, work.table.id)
    return work.state


def index(work: Work, chance: random.Random) -> State | None:
    """Build, extend or replace an index."""
    columns = [one for one in work.state.columns if one.type in INDEX_TYPES]
    column = chance.choice(columns)
    kind = chance.choice(INDEX_TYPES[column.type])
    named: dict[str, Any] = {
        "name": f"{column.name}_{kind.lower()}",
        "if_exists": chance.choice(("extend", "extend", "replace")),
        "segments": chance.choice((1, 3)),
    }
    if kind == "IVF_FLAT":
        named["options"] = {"num_partitions": 1}
    work.note("build_index", column.name, kind, **named)
    build_index(work.table.spark, work.table.namespace, work.table.id, column.name, kind, **named)
    return work.state


def extend(work: Work, chance: random.Random) -> State | None:
    """Extend an index that exists."""
    present = [one for one in work.table.open().describe_indices() if one.name.count("_") == 1]
    if not present:
        return None
    one = chance.choice(sorted(present, key=lambda index: index.name))
    column, kind = one.field_names[0], one.name.rpartition("_")[2].upper()
    if kind == "LIST" or kind == "FLAT":
        return None
    work.note("build_index", column, kind, name=one.name, if_exists="extend")
    build_index(
        *(work.table.spark, work.table.namespace, work.table.id, column, kind),
        name=one.name,
        if_exists="extend",
    )
    return work.state


def clean_up(work: Work, chance: random.Random) -> State:
    """Clean up old versions."""
    keep = chance.choice((1, 2, 4, 8))
    work.note("clean_up_versions", older_than=timedelta(0), keep_versions=keep)
    clean_up_versions(work.table.namespace, work.table.id, older_than=timedelta(0), keep_versions=keep)
    return work.state


def bookmark(work: Work, chance: random.Random) -> State:
    """Move a bookmark to a version, or delete it."""
    name = chance.choice(("mon", "tue"))
    if name in work.model.tags and chance.random() < 0.3:
        work.note("delete_bookmark", name)
        delete_bookmark(work.table.namespace, work.table.id, name)
        del work.model.tags[name]
        return work.state
    version = chance.choice(work.known_versions())
    work.note("move_bookmark", name, version)
    move_bookmark(work.table.namespace, work.table.id, name, version)
    work.model.tags[name] = version
    return work.state


def add_empty(work: Work, chance: random.Random) -> State | None:
    """Add a column without values."""
    if (added := _new_column(work, chance)) is None:
        return None
    work.note("add_columns", {added.name: added.type})
    add_columns(work.table.namespace, work.table.id, {added.name: added.type})
    return work.state.with_columns([*work.state.columns, added])


def add_computed(work: Work, chance: random.Random) -> State | None:
    """Add a column by an expression."""
    sources, added = work.state.of_types("double"), _new_column(work, chance, "double")
    if added is None or not sources:
        return None
    source = chance.choice(sources)
    expression = f"{source.name} * 2.0"
    work.note("add_columns", expressions={added.name: expression})
    add_columns(work.table.namespace, work.table.id, expressions={added.name: expression})
    return _computed(work.state, added, lambda row: _times_two(row.get(source.number)))


def compute(work: Work, chance: random.Random) -> State | None:
    """Compute a column: a new one, the missing values of one, or those of the rows that match."""
    sources = work.state.of_types(*NUMBERS)[1:]
    targets = work.state.of_types("double")
    added = _new_column(work, chance, "double") if chance.random() < 0.5 or not targets else None
    target = added or (chance.choice(targets) if targets else None)
    sources = [one for one in sources if one != target]
    if target is None or not sources:
        return None
    source, factor = chance.choice(sources), chance.choice((3.0, 5.0))
    named: dict[str, Any] = {"dtype": "double"}
    where = None
    match chance.randrange(3):
        case 0:
            named["where"] = "TRUE"
        case 1 if added is None:
            where = condition(chance, replace(work.state, columns=(_key(work),)))
            named["where"] = where.text
    work.note("compute_column", target.name, f"{factor} * {source.name}", [source.name], **named)
    with work.table.in_threads():
        compute_column(
            *(work.table.spark, work.table.namespace, work.table.id, target.name),
            *(_multiplied(factor), [source.name]),
            **named,
        )

    def computed(row: Row) -> Any:
        present = row.get(target.number)
        chosen = present is None if "where" not in named else where is None or where.matches(row)
        given = row.get(source.number)
        return (None if given is None else factor * given) if chosen else present

    return _computed(work.state, target, computed)


def rename(work: Work, chance: random.Random) -> State | None:
    """Rename a column."""
    columns = list(work.state.columns)
    if len(columns) < 2:
        return None
    position = chance.randrange(1, len(columns))
    free = [name for name in (*BASE, *_NAMES) if name not in dict(work.state.schema)]
    if not free:
        return None
    old, new = columns[position], chance.choice(free)
    work.note("alter_columns", rename={old.name: new})
    alter_columns(work.table.namespace, work.table.id, rename={old.name: new})
    columns[position] = replace(old, name=new)
    return work.state.with_columns(columns)


def widen(work: Work, chance: random.Random) -> State | None:
    """Widen the type of a column."""
    columns = list(work.state.columns)
    fitting = [position for position, one in enumerate(columns) if one.type == "int"]
    if not fitting:
        return None
    position = chance.choice(fitting)
    old, kind = columns[position], chance.choice(("bigint", "double"))
    work.note("alter_columns", types={old.name: kind}, drop_indices=True)
    alter_columns(work.table.namespace, work.table.id, types={old.name: kind}, drop_indices=True)
    columns[position] = replace(old, type=kind)
    return work.state.with_columns(columns)


def drop(work: Work, chance: random.Random) -> State | None:
    """Drop a column."""
    columns = list(work.state.columns)
    if len(columns) < 3:
        return None
    dropped = columns.pop(chance.randrange(1, len(columns)))
    work.note("drop_columns", [dropped.name], drop_indices=True)
    drop_columns(work.table.namespace, work.table.id, [dropped.name], drop_indices=True)
    return work.state.with_columns(columns)


def _write(
    work: Work,
    chance: random.Random,
    rows: Sequence[Row],
    columns: Sequence[Column],
    *,
    vectors: bool = False,
    **named: Any,
) -> Any:
    if vectors and (names := [one.name for one in columns if one.type == "vector"]):
        named["options"] = TableLayout(vector_columns=dict.fromkeys(names, 2))
    data = work.arrow(rows, columns)
    parts = chance.choice((1, 1, 2))
    work.note("write_table", "rows", **named)
    return write_table(work.table.frame(data, parts), work.table.namespace, work.table.id, **named)


def _key(work: Work) -> Column:
    return work.state.columns[0]


def _simple(work: Work, chance: random.Random) -> Condition:
    """Return a condition that our verbs take: no functions on lists."""
    columns = tuple(one for one in work.state.columns if one.type not in ("array", "vector"))
    return condition(chance, replace(work.state, columns=columns))


def _new_column(work: Work, chance: random.Random, kind: str | None = None) -> Column | None:
    free = [name for name in (*_NAMES, *BASE) if name not in dict(work.state.schema)]
    if not free:
        return None
    return work.model.new_column(chance.choice(free), kind or chance.choice(_ADDED))


def _added(state: State, rows: Sequence[Row]) -> State:
    return state.with_rows([*state.rows, *rows])


def _without(state: State, condition: Condition) -> State:
    return state.with_rows(row for row in state.rows if not condition.matches(row))


def _upserted(state: State, rows: Sequence[Row]) -> State:
    key = state.columns[0].number
    keys = {row[key] for row in rows}
    return state.with_rows([*(row for row in state.rows if row.get(key) not in keys), *rows])


def _midnight(day: Any, zone: ZoneInfo) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=zone)


def _precedes(present: Any, new: Any) -> bool:
    return new is None or (present is not None and present >= new)


def _computed(state: State, column: Column, value: Callable[[Row], Any]) -> State:
    columns = state.columns if column in state.columns else (*state.columns, column)
    return State(columns, state.rows).with_rows({**row, column.number: value(row)} for row in state.rows)


def _times_two(value: Any) -> Any:
    return None if value is None else value * 2.0


def _multiplied(factor: float) -> Callable[[pa.RecordBatch], pa.Array]:
    return lambda batch: pc.multiply(batch.column(0).cast(pa.float64()), factor)


OWN: dict[Step, int] = {
    append: 3,
    append_dates: 1,
    append_files: 1,
    append_merged: 1,
    overwrite: 1,
    replace_where: 2,
    upsert: 4,
    upsert_files: 1,
    upsert_merged: 1,
    upsert_compared: 3,
    delete: 3,
    stage: 3,
    publish: 4,
    discard: 1,
    restore: 3,
    compact: 2,
    index: 4,
    extend: 2,
    clean_up: 1,
    bookmark: 2,
    add_empty: 1,
    add_computed: 1,
    compute: 2,
    rename: 1,
    widen: 1,
    drop: 1,
}
"""The steps, and how often they are drawn."""
