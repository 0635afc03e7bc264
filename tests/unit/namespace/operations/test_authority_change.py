"""Conversions of tables to which nothing was written yet."""

from pathlib import Path

import pytest

from tests.unit.spark.every_verb import NAME, TABLE, Lake, rows


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_a_table_without_data_is_converted_in_both_directions(tmp_path: Path, managed_by: str) -> None:
    lake = Lake(str(tmp_path), managed_by)
    lake.namespace.declare_table(TABLE)
    assert not Path(lake.location).exists()
    other = "impl" if managed_by == "storage" else "storage"

    for wanted in (other, managed_by, other):
        assert lake.namespace.convert_table(TABLE["id"], managed_by=wanted) is True
        described = lake.namespace.describe_table(TABLE)
        assert (described.managed_versioning is True, lake.version) == (wanted == "impl", 0)

    assert lake.table().append(rows(1)).version == 1
    assert lake.contents(NAME) == (("n", "v"), ("[('n', 1), ('v', 10)]",))


def test_the_table_may_be_registered_again_before_its_first_write(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path), "storage")
    lake.namespace.declare_table(TABLE)

    lake.namespace.register_table(
        {**TABLE, "location": lake.location, "mode": "overwrite", "properties": {"managed_by": "impl"}}
    )

    assert lake.namespace.describe_table(TABLE).managed_versioning is True
