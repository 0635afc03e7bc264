"""Names of Lance's system columns, and the parts of a row's address."""

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

from airflow_provider_lancens.namespace.system_columns import (
    ROW_ADDRESS,
    first_address,
    fragment_of,
    offset_of,
)


def test_an_address_is_the_id_of_a_fragment_and_an_offset_that_counts_deleted_rows(tmp_path: Path) -> None:
    for start in (0, 10):
        rows = pa.table({"id": range(start, start + 3)})
        dataset = lance.write_dataset(rows, str(tmp_path / "t"), mode="append")
    dataset.delete("id = 10")

    found = dataset.to_table(columns=["id", ROW_ADDRESS], filter="id > 10")
    addresses = found[ROW_ADDRESS].to_numpy().astype(np.int64)

    assert fragment_of(addresses).tolist() == [1, 1]
    assert offset_of(addresses).tolist() == [1, 2]
    assert first_address(1) + 1 == int(addresses[0])


def test_a_single_address_is_divided_like_an_array() -> None:
    address = first_address(7) + 5

    assert (fragment_of(address), offset_of(address)) == (7, 5)
