"""Hive tables of a metastore with TLS, and with Kerberos: Spark logs in like the connection."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pyspark_versions import has_hive_4_client
from tests.servers.certificates import PASSWORD, authority, certificate
from tests.servers.hadoop import site_xml
from tests.servers.kerberos import REALM, SERVICE, Kdc, kdc, kerberos_metastore
from tests.servers.standalone import standalone_metastore
from tests.support.brought_tables import BROUGHT, bring, client_of_hive_4, rows

Connect = Callable[..., str]

METASTORE = "spark.hadoop.hive.metastore."

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400), has_hive_4_client]


@pytest.fixture
def realm(tmp_path: Path) -> Iterator[Kdc]:
    folder = tmp_path / "kdc"
    folder.mkdir()
    with kdc(folder) as running:
        for principal in (SERVICE, "ana"):
            running.keytab(principal)
        yield running


def test_tables_of_a_metastore_with_tls(connect: Connect, database: str, tmp_path: Path) -> None:
    ours = authority()
    settings = {
        "metastore.use.SSL": "true",
        "metastore.keystore.path": certificate(ours, "127.0.0.1").write_keystore(tmp_path, "server"),
        "metastore.keystore.password": PASSWORD,
        "metastore.keystore.type": "PKCS12",
    }
    (tmp_path / "hms").mkdir()
    with standalone_metastore(tmp_path / "hms", settings) as port:
        trusted = {"client.tls": "true", "client.tls.ca-file": ours.write(tmp_path, "authority")[0]}
        extra = {"root": str(tmp_path / "lake"), "client.connect-timeout": "60", **trusted}
        connect(conn_type="lance_hive2", host=f"thrift://127.0.0.1:{port}", extra=extra)
        store = {
            f"{METASTORE}truststore.path": ours.write_truststore(tmp_path, "trusted"),
            f"{METASTORE}truststore.password": PASSWORD,
            f"{METASTORE}truststore.type": "PKCS12",
        }

        brought = rows(bring(database, tmp_path, **client_of_hive_4(), **store))

    assert brought == BROUGHT


def test_tables_of_a_metastore_with_kerberos(
    realm: Kdc,
    connect: Connect,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(realm.configuration))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{realm.ticket('ana')}")
    hadoop = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": "privacy",
        "yarn.resourcemanager.principal": "ana",  # Spark asks for one before it reads any file
    }
    (tmp_path / "core-site.xml").write_text(site_xml(hadoop))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))  # Hadoop logs in before Spark's settings count
    (tmp_path / "hms").mkdir()
    with kerberos_metastore(realm, tmp_path / "hms") as uri:
        extra = {"root": str(tmp_path / "lake"), "client.connect-timeout": "60", "client.auth": "kerberos"}
        connect(conn_type="lance_hive2", host=uri, extra=extra)
        login = {
            f"{METASTORE}kerberos.principal": f"{SERVICE.split('/')[0]}/_HOST@{REALM}",
            "spark.driver.extraJavaOptions": f"-Djava.security.krb5.conf={realm.configuration}",
        }

        brought = rows(bring(database, tmp_path, **client_of_hive_4(), **login))

    assert brought == BROUGHT
