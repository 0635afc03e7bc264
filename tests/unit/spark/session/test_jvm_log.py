"""The JVM's lines have their own levels in this process's log."""

import logging
import subprocess
import threading
from logging import CRITICAL, DEBUG, ERROR, INFO, WARNING

import pytest

from airflow_provider_lancens.spark.session import logged_output, parsed


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("26/11/23 07:17:49 INFO SparkContext: Running", INFO, "SparkContext: Running"),
        ("26/11/23 07:17:49 WARN BlockManager: lost", WARNING, "BlockManager: lost"),
        ("26/11/23 07:17:49 ERROR Executor: failed", ERROR, "Executor: failed"),
        ("26/11/23 07:17:49 FATAL Executor: failed", CRITICAL, "Executor: failed"),
        ("[2026-11-23T07:17:59Z WARN  lance::io] slow", WARNING, "lance::io] slow"),
        ("printed by a user's function", INFO, "printed by a user's function"),
    ],
)
def test_a_line_has_the_level_that_it_names(line: str, level: int, text: str) -> None:
    assert list(parsed([line])) == [(level, text)]


@pytest.mark.parametrize(
    "line",
    [
        "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
        'Setting default log level to "WARN".',
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "26/11/23 07:17:50 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform",
        "[2026-11-23T07:17:59Z WARN  lance::dataset] No existing dataset at /t.lance, it will be created",
    ],
)
def test_a_message_that_calls_for_no_action_is_no_warning(line: str) -> None:
    assert [found.level for found in parsed([line])] == [DEBUG]


def test_a_stack_trace_has_the_level_of_its_error() -> None:
    lines = [
        "26/11/23 07:17:49 ERROR Executor: failed",
        "java.io.IOException: no space",
        "\tat Disk.write",
        "",
    ]

    assert [found.level for found in parsed(lines)] == [ERROR] * 3


def test_the_output_of_a_child_process_is_logged_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    others = set(threading.enumerate())  # that of a session of other tests doesn't end
    with logged_output() as output:
        command = "echo '26/11/23 07:17:49 WARN Disk: full' >&2; printf 'no newline' >&2"
        subprocess.run(["sh", "-c", command], stderr=output, check=True)

    for thread in set(threading.enumerate()) - others:
        thread.join()
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (WARNING, "Disk: full"),
        (WARNING, "no newline"),
    ]
