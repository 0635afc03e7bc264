"""Airflow's database with empty tables, in memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session


@contextmanager
def airflow_database(
    monkeypatch: pytest.MonkeyPatch, models: Sequence[Any], *, used_by: Sequence[str]
) -> Iterator[Session]:
    """Yield a session with the tables of `models`; the modules in `used_by` create this one too."""
    engine = create_engine("sqlite://")
    for model in models:
        model.__table__.create(engine)
    with Session(engine) as session:

        @contextmanager
        def opened() -> Iterator[Session]:
            yield session

        for module in used_by:
            monkeypatch.setattr(f"{module}.create_session", opened)
        yield session
