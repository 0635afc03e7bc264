"""Responses of the specification that don't show vended credentials."""

import logging
import pickle
from typing import Any

import pytest
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.interface import redacted_responses

HUSH = "hu5h-hu5h"
DESCRIBED = {
    "location": f"s3://KEY:{HUSH}@bucket/t.lance",
    "storage_options": {"aws_secret_access_key": HUSH, "region": "eu-west-1"},
    "properties": {"source": f"jdbc://me:{HUSH}@host/db", "api.token": HUSH, "team": "flights"},
}


@pytest.fixture
def described() -> Any:
    return redacted_responses.DescribeTableResponse(**DESCRIBED)


def test_no_text_of_a_response_shows_a_secret(described: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        logging.getLogger("task").info("described: %s, %r", described, described)
    for text in (repr(described), str(described), f"{described}", described.to_str(), caplog.text):
        assert HUSH not in text
        assert "s3://***@bucket/t.lance" in text
        assert "flights" in text


def test_fields_and_conversions_are_not_redacted(described: Any) -> None:
    assert described.storage_options["aws_secret_access_key"] == HUSH
    assert described.model_dump()["storage_options"] == DESCRIBED["storage_options"]
    assert described.to_dict()["location"] == DESCRIBED["location"]
    assert isinstance(described, models.DescribeTableResponse)


def test_a_redacted_response_can_be_pickled(described: Any) -> None:
    again = pickle.loads(pickle.dumps(described))
    assert again == described
    assert HUSH not in repr(again)


@pytest.mark.parametrize(
    "name",
    [name for name in vars(redacted_responses) if name.endswith("Response") and not name.startswith("_")],
)
def test_every_response_with_options_or_properties_is_redacted(name: str) -> None:
    kind = getattr(redacted_responses, name)
    fields = {field: value for field, value in DESCRIBED.items() if field in kind.model_fields}
    assert fields
    shown = repr(kind(**fields))
    assert HUSH not in shown
    assert shown.startswith(name)
