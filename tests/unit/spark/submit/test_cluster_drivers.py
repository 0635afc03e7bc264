"""Drivers on a cluster: identified by spark-submit's output, found and killed by spark-submit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_lancens.spark.submit import ClusterError, driver_of

ID = "application_1795332690234_0001"
YARN = {"spark.master": "yarn", "spark.yarn.queue": "night", "spark.kerberos.principal": "me@REALM"}
PODS = {"spark.master": "k8s://https://hub", "spark.kubernetes.context": "jobs", "spark.app.name": "dag.task"}


def test_an_application_is_killed_by_the_id_in_the_log(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary("true"), YARN, "cluster")
    driver.read_line("26/11/22 07:49:58 INFO Client: Preparing resources for our AM container")
    assert not driver.taken_over
    driver.read_line(f"26/11/22 07:49:58 INFO Client: Submitting application {ID} to ResourceManager")
    driver.read_line(f"26/11/22 07:49:59 INFO Client: Application report for {ID} (state: ACCEPTED)")

    assert driver.taken_over
    assert driver.end()

    [command] = asked()
    assert command.endswith(f"ApplicationCLI spark-internal application -kill {ID}")
    assert "--master local --deploy-mode client --conf spark.kerberos.principal=me@REALM " in command
    assert driver.log_command == f"yarn logs -applicationId {ID}"


def test_an_application_is_killed_by_its_tag_if_the_log_has_no_id(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(
        binary(f"echo {ID} SPARK http://proxy/{ID}/"), {**YARN, "spark.yarn.tags": "a,b"}, "cluster"
    )

    assert driver.end()

    listed, killed = asked()
    tags = driver.conf["spark.yarn.tags"].split(",")
    assert tags[:2] == ["a", "b"]
    assert listed.endswith(f"application -list -appTags {tags[2]}")
    assert killed.endswith(f"application -kill {ID}")


def test_an_application_that_was_never_submitted_is_not_killed(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    assert not driver_of(binary("echo none"), YARN, "cluster").end()

    assert len(asked()) == 1


LISTED = """
Total number of applications (states: [NEW, RUNNING, FINISHED] and tags: [lance-abc]):5
                Application-Id\t    Application-Name\t    Application-Type\t      User\t     Queue\t             State\t       Final-State\t       Progress\t                       Tracking-URL
application_1795557741097_0001\t          dag.task\t               SPARK\t      root\troot.default\t            KILLED\t            KILLED\t           100%\thttp://hub/1
application_1795557741097_0002\t          dag.task\t               SPARK\t      root\troot.default\t          FINISHED\t            FAILED\t           100%\thttp://hub/2
application_1795557741097_0003\t          dag.task\t               SPARK\t      root\troot.default\t          FINISHED\t         SUCCEEDED\t           100%\thttp://hub/3
application_1795557741097_0004\t     dag.\ttask\t a\t               SPARK\t      root\troot.default\t          ACCEPTED\t         UNDEFINED\t             0%\tN/A
application_1795557741097_0005\t          dag.task\t               SPARK\t      root\troot.default\t           RUNNING\t         UNDEFINED\t            10%\thttp://hub/5
"""  # noqa: E501 as Hadoop 3.4 prints it


def test_applications_of_a_job_are_found_by_its_tag(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary(f"cat <<'END'\n{LISTED}\nEND"), YARN, "cluster", "abc")

    found = driver.find()

    assert driver.conf["spark.yarn.tags"] == "lance-abc"
    assert asked()[0].endswith("application -list -appTags lance-abc -appStates ALL")
    first = "application_1795557741097_000"
    states = ("failed", "failed", "succeeded", "running", "running")
    assert found == {f"{first}{number}": state for number, state in enumerate(states, 1)}


def test_an_adopted_application_is_killed_by_its_id(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary("true"), YARN, "cluster", "abc")

    driver.attach(ID)

    assert driver.log_command == f"yarn logs -applicationId {ID}"
    assert driver.end()
    assert asked()[0].endswith(f"application -kill {ID}")


PODS_LISTED = """
Submitting a request for the status of submission jobs:lance-abc-* in k8s://https://hub.
{}"""
POD_LISTED = """Application status (driver):
\t pod name: {}
\t namespace: jobs
\t labels: spark-role -> driver, lance-job -> {}, team -> lake
\t pod uid: 1
\t start time: 2026-11-24T22:03:24Z
\t phase: {}
\t container status: N/A
"""


def pods_listed(*pods: tuple[str, str, str]) -> str:
    """What spark-submit prints of pods: name, label and phase of each."""
    return PODS_LISTED.format("".join(POD_LISTED.format(*pod) for pod in pods))


def test_pods_of_a_job_are_found_by_their_name(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    listed = pods_listed(*((f"lance-abc-{number}-driver", "abc", one) for number, one in enumerate(phases)))
    conf = {**PODS, "spark.kubernetes.namespace": "jobs"}
    driver = driver_of(binary(f"cat <<'END'\n{listed}\nEND"), conf, "cluster", "abc")

    found = driver.find()

    assert asked()[0].endswith("--status jobs:lance-abc-*")
    assert list(found.values()) == ["running", "running", "succeeded", "failed", "failed"]
    assert driver.conf["spark.kubernetes.driver.pod.name"] not in found  # each submission has its own


def test_a_pod_named_by_the_user_is_found_if_it_runs_the_same_job(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    listed = pods_listed(("orders", "abc", "Running"))
    conf = {**PODS, "spark.kubernetes.driver.pod.name": "orders"}
    command = binary(f"cat <<'END'\n{listed}\nEND")

    found = [driver_of(command, conf, "cluster", identity).find() for identity in ("abc", "def")]

    assert found == [{"orders": "running"}, {}]
    assert asked()[0].endswith("--status default:orders")


def test_an_adopted_pod_is_deleted_by_its_name(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary("true"), PODS, "cluster", "abc")

    driver.attach("lance-abc-1-driver")

    assert driver.log_command == "kubectl logs --namespace default lance-abc-1-driver"
    assert driver.end()
    assert asked()[0].endswith("--kill default:lance-abc-1-driver")


@pytest.mark.parametrize("conf", [YARN, PODS], ids=["yarn", "kubernetes"])
def test_a_cluster_that_does_not_answer_a_search_is_an_error_without_the_stack_trace(
    binary: Callable[[str], str], conf: dict[str, str]
) -> None:
    command = binary("printf 'no route to host\\n\\tat java.lang.Thread.run\\n'; exit 1")

    with pytest.raises(ClusterError, match=r"^no route to host$"):
        driver_of(command, conf, "cluster", "abc").find()


@pytest.mark.parametrize("conf", [YARN, PODS], ids=["yarn", "kubernetes"])
def test_an_unreachable_cluster_is_logged_and_does_not_hide_the_error(
    binary: Callable[[str], str], caplog: pytest.LogCaptureFixture, conf: dict[str, str]
) -> None:
    driver = driver_of(binary("echo no route to host; exit 1"), conf, "cluster")

    assert not driver.end()

    assert "no route to host" in caplog.text


def test_a_missing_command_is_logged_and_does_not_hide_the_error(caplog: pytest.LogCaptureFixture) -> None:
    assert not driver_of("/none/spark-submit", PODS, "cluster").end()

    assert "may still be running" in caplog.text


def test_a_pod_is_deleted_in_its_namespace(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary("true"), PODS, "cluster")
    pod = driver.conf["spark.kubernetes.driver.pod.name"]
    driver.read_line("\t namespace: jobs\n")

    assert driver.end()

    there = "--conf spark.master=k8s://https://hub --conf spark.kubernetes.context=jobs"
    assert asked() == [f"{there} --kill jobs:{pod}"]


@pytest.mark.parametrize(
    ("phases", "failed"),
    [
        pytest.param([], False, id="a-silent-log"),
        pytest.param(["Pending", "Running", "Succeeded"], False, id="ended-well"),
        pytest.param(["Pending", "Running", "Failed"], True, id="failed"),
        pytest.param(["Pending", "Running"], True, id="gone"),
    ],
)
def test_the_result_of_a_pod_is_its_last_phase(phases: list[str], failed: bool) -> None:
    driver = driver_of("spark-submit", PODS, "cluster")

    for phase in phases:
        driver.read_line(f"\t phase: {phase}\n")

    assert driver.failed == failed


def test_driver_names_are_unique() -> None:
    drivers = [driver_of("spark-submit", conf, "cluster") for conf in (YARN, PODS) for _ in range(2)]

    assert len({str(driver.conf) for driver in drivers}) == 4


@pytest.mark.parametrize("master", ["spark://hub:7077", "local[*]"])
def test_cluster_mode_is_refused_on_other_clusters(master: str) -> None:
    with pytest.raises(ValueError, match="use deploy-mode client"):
        driver_of("spark-submit", {"spark.master": master}, "cluster")


def test_in_client_mode_the_driver_ends_with_spark_submit() -> None:
    driver = driver_of("spark-submit", YARN, "client")

    assert driver.find() == {}
    assert (driver.conf, driver.taken_over, driver.end(), driver.failed, driver.log_command) == (
        {},
        False,
        False,
        False,
        "",
    )
