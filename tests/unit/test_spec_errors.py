"""The specification's errors are those of `lance_namespace`, all of them."""

import inspect

import pytest
from lance_namespace import errors

from airflow_provider_lancens import spec_errors


def test_each_error_is_that_of_lance_namespace() -> None:
    defined = {
        name for name, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, Exception)
    }

    assert defined | {"ErrorCode", "from_error_code"} == set(spec_errors.__all__)
    for name in spec_errors.__all__:
        assert getattr(spec_errors, name) is getattr(errors, name)


def test_another_name_is_no_error() -> None:
    with pytest.raises(AttributeError, match="spec_errors' has no attribute 'Nope'"):
        spec_errors.Nope  # noqa: B018
