"""User and password by SASL PLAIN, with Hive Metastore 4.0.1."""

from collections.abc import Iterator

import pytest
from lance_namespace.errors import ServiceUnavailableError, UnauthenticatedError

from airflow_provider_lancens.namespace import Hive2Namespace, Hive3Namespace
from tests.servers.standalone import standalone_metastore

pytestmark = pytest.mark.slow

ROOT = {"id": []}
USER, PASSWORD = "ana", "open sesame"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {
        "metastore.authentication": "CONFIG",
        "metastore.execute.setugi": "false",
        "metastore.authentication.config.username": USER,
        "metastore.authentication.config.password": PASSWORD,
    }
    with standalone_metastore(tmp_path_factory.mktemp("hms"), settings) as port:
        yield f"thrift://127.0.0.1:{port}"


def properties(uri: str, password: str = PASSWORD) -> dict[str, str]:
    return {
        "uri": uri,
        "root": "/nowhere",
        "client.auth": "plain",
        "client.plain.without-tls": "true",
        "client.user": USER,
        "client.password": password,
        "client.connect-timeout": "60",
    }


@pytest.mark.parametrize("kind", [Hive2Namespace, Hive3Namespace])
def test_the_right_password_opens_a_connection(uri: str, kind: type[Hive2Namespace], database: str) -> None:
    with kind(**properties(uri)) as namespace:
        target = [database] if kind is Hive2Namespace else ["hive", database]
        namespace.create_namespace({"id": target})
        for _ in range(3):
            namespace.namespace_exists({"id": target})
        namespace.drop_namespace({"id": target})


def test_a_wrong_password_is_code_16_and_not_shown(uri: str) -> None:
    namespace = Hive2Namespace(**properties(uri, "hush"))
    with pytest.raises(UnauthenticatedError, match=r"client\.auth=plain failed for user 'ana'") as refusal:
        namespace.list_namespaces(ROOT)
    for text in (str(refusal.value), repr(namespace), namespace.namespace_id()):
        assert "hush" not in text


def test_a_client_without_sasl_gets_an_error_that_mentions_it(uri: str) -> None:
    namespace = Hive2Namespace(uri=uri, root="/nowhere")
    with pytest.raises(ServiceUnavailableError, match=r"client\.auth if it uses SASL"):
        namespace.list_namespaces(ROOT)
