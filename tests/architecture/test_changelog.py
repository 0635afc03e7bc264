"""The changelog: a section for each release, grouped by kind of change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import airflow_provider_lancens

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Documentation"]
RELEASE = re.compile(r"(?P<version>\d+\.\d+\.\d+) \((?P<date>unreleased|\d{4}-\d{2}-\d{2})\)\n")


@pytest.fixture(scope="module")
def sections(root: Path) -> list[str]:
    """The sections of the releases, newest first, each beginning with its heading's text."""
    return re.split(r"^## ", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]


def test_the_newest_section_is_that_of_this_version(sections: list[str]) -> None:
    newest = RELEASE.match(sections[0])

    assert newest is not None, sections[0][:80]
    assert newest["version"] == airflow_provider_lancens.__version__


def test_only_the_newest_section_may_be_unreleased(sections: list[str]) -> None:
    dates = [found["date"] for section in sections if (found := RELEASE.match(section))]

    assert len(dates) == len(sections)
    assert "unreleased" not in dates[1:]


def test_changes_are_grouped_by_kind(sections: list[str]) -> None:
    for section in sections:
        heading, *groups = re.split(r"^### ", section, flags=re.MULTILINE)
        kinds = [group.partition("\n")[0] for group in groups]
        assert kinds == [kind for kind in KINDS if kind in kinds], heading
        assert [kind for kind, group in zip(kinds, groups, strict=True) if "\n- " not in group] == []
        assert "\n- " not in heading, "a change without a kind"
