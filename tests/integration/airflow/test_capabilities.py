"""The table of `docs/connections.md` says what each kind of catalog can do, as it was seen to.

With ``LANCENS_WRITE_CAPABILITIES=1`` the test writes the table into the page instead of comparing it.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from tests.integration.airflow.capabilities import STEPS, Lake
from tests.servers.glue_double import REGION, GlueDouble
from tests.support.catalogs import KINDS, catalog_connection

PAGE = Path(__file__).parents[3] / "docs" / "connections.md"
TABLE = re.compile(r"\| Airflow does \|.*?(?=\n\n)", re.DOTALL)
CODE = re.compile(r"\(code (\d+), ")
ADVICE = re.compile(r"; instead: (.*?)(?:;|$)")

Connect = Callable[..., str]

pytestmark = pytest.mark.thorough


@contextmanager
def on_hive(connect: Connect, folder: Path) -> Iterator[str]:
    with EmbeddedMetastore(folder / "metastore") as server:
        yield connect(host=server.uri, extra={"root": str(folder / "lake")})


@contextmanager
def on_glue(connect: Connect, folder: Path) -> Iterator[str]:
    with GlueDouble() as server:
        keys = {name: server.properties[name] for name in ("access_key_id", "secret_access_key")}
        yield connect(
            conn_type="lance_glue",
            login=keys["access_key_id"],
            password=keys["secret_access_key"],
            extra={"endpoint": server.endpoint, "region": REGION, "root": str(folder / "lake")},
        )


def outcome(step: Callable[[Lake], object], lake: Lake) -> tuple[str, str]:
    """Whether a step succeeds, or the code of its refusal, and what to do instead."""
    try:
        step(lake)
    except AirflowFailException as error:
        code, advice = CODE.search(str(error)), ADVICE.search(str(error))
        if code is None:
            raise
        return code[1], advice[1] if advice and code[1] == "0" else ""
    except LanceNamespaceError as error:
        advice = ADVICE.search(str(error))
        return str(int(error.code)), advice[1] if advice else ""
    return "✓", ""


def test_the_page_says_what_each_kind_of_catalog_can_do(connect: Connect, tmp_path: Path) -> None:
    kinds = {
        "`lance_hive2`": on_hive,
        "`lance_glue`": on_glue,
        **{f"`{kind}`": lambda c, f, kind=kind: catalog_connection(kind, c, f / "lake") for kind in KINDS},
    }
    seen: dict[str, dict[str, str]] = {name: {} for name in STEPS}
    instead: dict[str, str] = {}
    for number, (kind, opened) in enumerate(kinds.items()):
        folder = tmp_path / str(number)
        (folder / "lake").mkdir(parents=True)
        with opened(connect, folder) as conn_id:
            lake = Lake(conn_id, folder / "lake")
            for name, step in STEPS.items():
                seen[name][kind], advice = outcome(step, lake)
                instead[name] = instead.get(name) or advice
    lines = ["| Airflow does | " + " | ".join(kinds) + " | Instead |", "| --- " * (len(kinds) + 2) + "|"]
    lines += [f"| {name} | {' | '.join(seen[name].values())} | {instead[name]} |" for name in STEPS]
    table = "\n".join(lines)

    page = PAGE.read_text()
    if os.environ.get("LANCENS_WRITE_CAPABILITIES"):
        PAGE.write_text(TABLE.sub(lambda _: table, page, count=1))
        return
    assert TABLE.search(page)[0] == table  # type: ignore[index]
