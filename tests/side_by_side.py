"""How the processes of one run share its tests: by files, or by folders whose files share dear servers."""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/e2e/flights", "tests/e2e/running")
"""Their files share an Airflow."""


class ByFile(LoadScopeScheduling):
    """Hands out what shares servers as one piece."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        return folder if folder in TOGETHER else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """See xdist's own hook; asked where a run has several processes."""
    return ByFile(config, log)
