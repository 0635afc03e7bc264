"""The two kinds of row ids that a table can have."""

import pytest

from airflow_provider_lancens.spark import TableLayout

# The default in each run.
BOTH_KINDS = [
    pytest.param(True, id="stable row ids"),
    pytest.param(False, id="row addresses", marks=pytest.mark.long),
]
"""Whether row ids are stable, for tests of what holds with either kind."""
OPTIONS_OF_BOTH_KINDS = [
    pytest.param(TableLayout(stable_row_ids=True), id="stable row ids"),
    pytest.param(TableLayout(stable_row_ids=False), id="row addresses", marks=pytest.mark.long),
]
