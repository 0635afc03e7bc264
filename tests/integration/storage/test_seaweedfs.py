"""An object store that nobody here wrote holds what commits need, and what each write, read and drop does."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from multiprocessing import get_context

import lance
import pytest
from lance.fragment import write_fragments

from airflow_provider_lancens.doctor.checks import check_storage
from airflow_provider_lancens.namespace import GlueNamespace
from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.namespace.storage.conditional_writes import has_conditional_writes
from airflow_provider_lancens.namespace.storage.purge import LANCE_ENTRIES
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark.commit.append_overwrite import KINDS
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from tests.old_table import ROW, target_at
from tests.servers.glue_double import GlueDouble
from tests.servers.seaweedfs import BUCKET, seaweedfs

pytestmark = [pytest.mark.long, pytest.mark.timeout(5400)]

RACES, WRITERS = 40, 16
PROCESSES, APPENDS = 4, 10
Storage = dict[str, str]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as options:
        yield options


@pytest.fixture
def location() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/t.lance"


def test_the_doctor_finds_nothing_wrong(storage: Storage, location: str) -> None:
    found = list(check_storage(location, storage))

    assert [str(one) for one in found if one.level != "ok"] == []


def test_the_store_refuses_to_overwrite(storage: Storage, location: str) -> None:
    assert has_conditional_writes(TableFiles(location, storage))


def test_one_of_many_writers_creates_a_file(storage: Storage, location: str) -> None:
    files = TableFiles(location, storage)

    def create(race: int) -> int:
        return sum(pool.map(lambda writer: files.create(f"race-{race}", b"%d" % writer), range(WRITERS)))

    with ThreadPoolExecutor(WRITERS) as pool:
        assert [create(race) for race in range(RACES)] == [1] * RACES


def append(location: str, storage: Storage, key: str) -> None:
    target = target_at(location, storage)
    fragments = write_fragments(ROW, location, mode="append", storage_options=storage)
    latest = target.latest_version()
    change = KINDS["append"](str(target.id), latest, ROW.schema, fragments)
    Committer(target, KeyedWrite(key), Counts(1, 1, 100)).commit(change)


def append_some(location: str, storage: Storage, process: int) -> None:
    for number in range(APPENDS):
        for _ in range(2):  # the second is a retry, which finds the first
            append(location, storage, f"{process}-{number}")


def test_appends_of_several_processes_are_each_made_once(storage: Storage, location: str) -> None:
    lance.write_dataset(ROW, location, storage_options=storage)

    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        work = [pool.submit(append_some, location, storage, one) for one in range(PROCESSES)]
        for one in work:
            one.result()

    assert lance.dataset(location, storage_options=storage).count_rows() == 1 + PROCESSES * APPENDS


@pytest.mark.parametrize("name", ["plain", "a b", "ä", "100%", "a%20b", "a+b"])
def test_a_table_is_declared_written_and_dropped(
    storage: Storage, glue: GlueDouble, database: str, name: str
) -> None:
    options = {f"{STORAGE_PREFIX}{key}": value for key, value in storage.items()}
    root = f"s3a://{BUCKET}/{uuid.uuid4().hex}"
    location = f"{root}/{name}.lance"
    with closing(GlueNamespace(**glue.properties, root=root, **options)) as namespace:
        namespace.create_namespace({"id": [database]})
        namespace.declare_table({"id": [database, "t"], "location": location})
        described = namespace.describe_table({"id": [database, "t"]})
        for mode in ("create", "append"):
            lance.write_dataset(ROW, described.location, mode=mode, storage_options=storage)
        assert namespace.count_table_rows({"id": [database, "t"]}).count == 2 * ROW.num_rows
        namespace.drop_table({"id": [database, "t"]})

    files = TableFiles(location, storage)
    assert [folder for folder in LANCE_ENTRIES if any(files.all_below(folder))] == []
