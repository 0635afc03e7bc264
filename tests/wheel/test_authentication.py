"""`wheel[sasl]` and `wheel[kerberos]`: a namespace on a metastore that requires authentication."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.kerberos import SERVICE, Kdc, kdc, kerberos_metastore
from tests.servers.standalone import standalone_metastore
from tests.support.installed_packages import Installed, on_each_python

# Each change installs the wheel alone, and with Spark.
pytestmark = pytest.mark.long

USER, PASSWORD = "ana", "open sesame"
OF_SERVER = {
    "metastore.authentication": "CONFIG",
    "metastore.execute.setugi": "false",
    "metastore.authentication.config.username": USER,
    "metastore.authentication.config.password": PASSWORD,
}
LIST = """
import json, sys
from airflow_provider_lancens.namespace import Hive3Namespace
with Hive3Namespace(**json.loads(sys.argv[1])) as namespace:
    print(sorted(namespace.list_namespaces({"id": ["hive"]}).namespaces))
"""
REFUSED = """
import json, sys
from lance_namespace.errors import LanceNamespaceError
from airflow_provider_lancens.namespace import Hive2Namespace
with Hive2Namespace(**json.loads(sys.argv[1])) as namespace:
    try:
        namespace.list_namespaces({"id": []})
    except LanceNamespaceError as error:
        print(type(error).__name__, error, sep=": ")
"""


@on_each_python("sasl")
def test_a_user_with_a_password_lists_the_databases(installed: Installed, tmp_path: Path) -> None:
    with standalone_metastore(tmp_path, OF_SERVER) as port:
        properties = {
            "uri": f"thrift://127.0.0.1:{port}",
            "root": str(tmp_path),
            "client.auth": "plain",
            "client.plain.without-tls": "true",
            "client.user": USER,
            "client.password": PASSWORD,
            "client.connect-timeout": "60",
        }
        assert installed.run("-c", LIST, json.dumps(properties)).strip() == "['default']"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC with the metastore's principal, and a user with a ticket."""
    with kdc(tmp_path_factory.mktemp("kdc")) as running:
        for principal in (SERVICE, USER):
            running.keytab(principal)
        running.ticket(USER)
        yield running


@pytest.fixture(scope="module")
def kerberos_uri(realm: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kerberos_metastore(realm, tmp_path_factory.mktemp("hms")) as uri:
        yield uri


@on_each_python("kerberos")
class TestTheWheelWithKerberos:
    def ask(self, installed: Installed, script: str, realm: Kdc, uri: str, cache: Path) -> str:
        own = {"client.auth": "kerberos", "client.connect-timeout": "60"}
        properties = json.dumps({"uri": uri, "root": "/nowhere", **own})
        environment = {"KRB5_CONFIG": str(realm.configuration), "KRB5CCNAME": f"FILE:{cache}"}
        return installed.run("-c", script, properties, **environment).strip()

    def test_a_user_with_a_kerberos_ticket_lists_the_databases(
        self, installed: Installed, realm: Kdc, kerberos_uri: str
    ) -> None:
        ticket = realm.folder / f"{USER}.cache"

        assert self.ask(installed, LIST, realm, kerberos_uri, ticket) == "['default']"

    def test_a_user_without_a_ticket_gets_the_error_of_the_kerberos_library(
        self, installed: Installed, realm: Kdc, kerberos_uri: str, tmp_path: Path
    ) -> None:
        refused = self.ask(installed, REFUSED, realm, kerberos_uri, tmp_path / "none")

        assert refused.startswith("UnauthenticatedError: ")
        assert "redentials" in refused
