"""The tests that a run selects, and how they are distributed over its processes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import tiers
from tests.xdist_scheduler import FIRST, FOLDERS, place_in_order, work_unit_of

TREE = Path(__file__).parents[2]
Source = pytest.Config.ArgsSource


@pytest.mark.parametrize(
    ("source", "given", "selected"),
    [
        (Source.TESTPATHS, "", tiers.EVERYDAY),
        (Source.INVOCATION_DIR, "", tiers.EVERYDAY),
        (Source.TESTPATHS, "long", "long"),
        (Source.ARGS, "", ""),
        (Source.ARGS, "not long", "not long"),
    ],
)
def test_only_a_run_without_arguments_is_the_everyday_suite(
    source: Source, given: str, selected: str
) -> None:
    config: Any = SimpleNamespace(args_source=source, option=SimpleNamespace(markexpr=given))

    tiers.select_tier(config)

    assert config.option.markexpr == selected
    assert bool(tiers.left_out(config)) == (selected == tiers.EVERYDAY)


@pytest.mark.parametrize(
    ("expression", "marks", "left_out"),
    [
        (tiers.EVERYDAY, "pytestmark = pytest.mark.slow", True),
        ("not thorough and not long", "pytestmark = pytest.mark.slow", False),
        ("not thorough and not long", "pytestmark = [pytest.mark.long, pytest.mark.timeout(9)]", True),
        ("not long", "pytestmark = [\n    pytest.mark.timeout(9),\n    pytest.mark.long,\n]", True),
        ("thorough and not long", "pytestmark = pytest.mark.thorough", False),
        ("not long or slow", "pytestmark = pytest.mark.long", False),
        ("not long", "pytestmark = pytest.mark.slow\n\n@pytest.mark.long\ndef test_one(): ...", False),
        ("not long", "pytestmark = [pytest.mark.slow]\nONES = [\n    pytest.mark.long,\n]", False),
        ("not long", "", False),
        ("", "pytestmark = pytest.mark.long", False),
    ],
)
def test_a_file_is_not_imported_if_a_mark_of_it_is_excluded(
    expression: str, marks: str, left_out: bool, tmp_path: Path
) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(f"import pytest\n\n{marks}\n")

    assert tiers.leaves_out(expression, file) == left_out


@pytest.mark.parametrize("path", [*FOLDERS, *FIRST])
def test_the_work_units_exist(path: str) -> None:
    assert (TREE / path).exists()


def test_tests_that_share_the_server_of_a_process_are_one_work_unit_and_other_files_alone() -> None:
    assert work_unit_of("tests/e2e/running/test_waits.py") == work_unit_of("tests/e2e/running/test_forms.py")
    assert work_unit_of("tests/e2e/test_examples.py") == "tests/e2e/test_examples.py"


def test_tests_of_sensors_are_mixed_with_those_of_spark() -> None:
    areas = ("integration/airflow", "integration/spark/write", "integration/managed")
    files = [
        str(file.relative_to(TREE)) for area in areas for file in (TREE / "tests" / area).glob("test_*.py")
    ]

    ordered = [Path(file).parts[2] for file in sorted(files, key=place_in_order)]

    middle = len(ordered) // 2
    assert all({*half} == {"airflow", "spark", "managed"} for half in (ordered[:middle], ordered[middle:]))
