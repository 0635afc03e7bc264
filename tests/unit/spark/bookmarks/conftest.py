"""A table of four versions, and a consumer's bookmark whose times can be set back."""

from pathlib import Path

import pytest
from lance_namespace import LanceNamespace

from tests.support.bookmarked_orders import DAY, Orders


@pytest.fixture
def orders(namespace: LanceNamespace, tmp_path: Path) -> Orders:
    made = Orders(namespace, tmp_path / "orders.lance")
    for first in range(4):
        made.commit(first)
    return made


@pytest.fixture
def overdue(orders: Orders) -> Orders:
    """The table, with a bookmark at version 2 that should have been moved a day ago."""
    orders.move(2, expires_after=2 * DAY)
    orders.set_back(3 * DAY)
    return orders
