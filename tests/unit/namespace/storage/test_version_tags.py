"""Tags that several clients set, move and delete at the same time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.namespace.storage import version_tags
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_removals import recorded_removal
from airflow_provider_lancens.namespace.storage.version_tags import (
    create_tag,
    delete_tag,
    list_tags,
    move_tag,
    set_tag,
)

CLIENTS, STEPS = 6, 40


def files_of(dataset: lance.LanceDataset) -> Manifests:
    return Manifests(dataset.uri, {})


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    for one in range(3):
        lance.write_dataset(
            pa.table({"x": [one]}), str(tmp_path / "t.lance"), mode="append" if one else "create"
        )
    return lance.dataset(str(tmp_path / "t.lance"))


def test_clients_of_one_tag_disturb_nobody(dataset: lance.LanceDataset) -> None:
    set_tag(dataset, files_of(dataset), "fixed", 1)

    def client(number: int) -> None:
        random, opened = Random(number), lance.dataset(dataset.uri)
        for _ in range(STEPS):
            version = random.randint(1, 3)
            change: Callable[[], object] = random.choice(
                [
                    partial(create_tag, opened, files_of(opened), "shared", version),
                    partial(move_tag, opened, files_of(opened), "shared", version),
                    partial(set_tag, opened, files_of(opened), "shared", version),
                    partial(delete_tag, opened, "shared"),
                ]
            )
            change()
            assert list_tags(opened)["fixed"]["version"] == 1

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(client, range(CLIENTS)))
    assert set(list_tags(dataset)) <= {"fixed", "shared"}


def test_a_tag_of_another_client_with_a_longer_name_is_moved_and_deleted(dataset: lance.LanceDataset) -> None:
    name = "x" * 210
    dataset.tags.create(name, 1)

    assert not create_tag(dataset, files_of(dataset), name, 2)
    set_tag(dataset, files_of(dataset), name, 3)
    assert list_tags(dataset)[name]["version"] == 3
    assert delete_tag(dataset, name)


@pytest.mark.parametrize("name", ["größe", "日本", "m²", "x" * 201])
def test_a_name_that_lance_accepts_and_cannot_list_or_store_is_refused(
    dataset: lance.LanceDataset, name: str
) -> None:
    for create in (create_tag, set_tag):
        with pytest.raises(InvalidInputError, match=r"^tag='.*is not a valid tag name; expected up to 200"):
            create(dataset, files_of(dataset), name, 1)
    assert list_tags(dataset) == {}


def test_a_tag_of_such_a_name_that_another_client_created_can_be_deleted(
    dataset: lance.LanceDataset,
) -> None:
    dataset.tags.create("größe", 1)

    assert delete_tag(dataset, "größe")
    assert list_tags(dataset) == {}


def test_one_of_several_clients_creates_a_tag(dataset: lance.LanceDataset) -> None:
    def create(number: int) -> bool:
        return create_tag(lance.dataset(dataset.uri), files_of(dataset), "new", number % 3 + 1)

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert sum(clients.map(create, range(CLIENTS))) == 1


def test_a_tag_that_does_not_exist_is_neither_moved_nor_deleted(dataset: lance.LanceDataset) -> None:
    assert not move_tag(dataset, files_of(dataset), "none", 1)
    assert not delete_tag(dataset, "none")
    assert not list_tags(dataset)


def test_a_missing_version_is_not_tagged(dataset: lance.LanceDataset) -> None:
    with pytest.raises(TableVersionNotFoundError, match="there is no version 9"):
        create_tag(dataset, files_of(dataset), "late", 9)
    assert not list_tags(dataset)


def test_a_tag_that_others_keep_creating_and_deleting_is_not_set_to_a_version_that_is_being_removed(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(dataset)
    dataset.tags.create("shared", 3)
    for change in ("create_tag", "move_tag"):
        monkeypatch.setattr(version_tags, change, lambda *_: False)
    with recorded_removal(files, [1]), pytest.raises(ConcurrentModificationError, match="'shared'"):
        set_tag(dataset, files, "shared", 1)
    assert list_tags(dataset)["shared"]["version"] == 3
