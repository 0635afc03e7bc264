"""Names that are valid in Glue."""

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from airflow_provider_lancens.namespace.glue.settings import GlueSettings

METASTORE = GlueMetastore(GlueSettings())


@pytest.mark.parametrize("name", ["t", "_t", "2024-01", "a.b", "two words", "é", "नमस्ते", "表", "x" * 255])
def test_a_valid_glue_name_is_accepted(name: str) -> None:
    METASTORE.check_name(name)


@pytest.mark.parametrize("name", ["x" * 256, "é" * 128, "表" * 86])
def test_a_name_is_measured_in_bytes(name: str) -> None:
    with pytest.raises(InvalidInputError, match="255 bytes"):
        METASTORE.check_name(name)


@pytest.mark.parametrize(
    "name",
    ["a/b", "a\\b", "..", "a..b", "a*", "a|b", "a%", "a@b", "a#b", "a?", "a\tb", " a", "a ", "a\ud800"],
)
def test_names_with_path_or_pattern_characters_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="allowed in Glue"):
        METASTORE.check_name(name)
