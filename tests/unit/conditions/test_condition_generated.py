"""Lance and Arrow pick the rows that plain Python picks; Spark is compared in the integration tests."""

from pathlib import Path

import lance

from airflow_provider_lancens.conditions import parse_condition
from tests.unit.conditions.generated import Conditions, python_rows, rows

COUNT = 300


def test_lance_and_arrow_pick_the_same_rows(tmp_path: Path) -> None:
    table = rows()
    plain = python_rows(table)
    dataset = lance.write_dataset(table, tmp_path / "t")
    conditions = Conditions(table.schema, seed=1)
    for _ in range(COUNT):
        text, meaning = conditions.condition()
        condition = parse_condition(text, table.schema)
        expected = [meaning(row) for row in plain]

        assert condition.mask(table).to_pylist() == expected, text
        matching = [number for number, matches in enumerate(expected) if matches]
        found = dataset.to_table(columns=["row"], filter=condition.lance_sql)["row"].to_pylist()
        assert found == matching, (text, condition.lance_sql)
        pruning = condition.pruning()
        assert pruning is None or table.filter(pruning)["row"].to_pylist() == matching, text
