"""MIT Kerberos on loopback: a key distribution center (KDC) with its own realm."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.servers.daemon import Daemon
from tests.servers.hadoop import HOST, free_port
from tests.servers.standalone import standalone_metastore

REALM = "LANCENS.TEST"
SERVICE = "hive/localhost"
_ALSO_IN_PATH = f"{os.defpath}:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Kdc:
    """A running KDC, and the folder with its files."""

    folder: Path

    @property
    def configuration(self) -> Path:
        """The krb5.conf of its clients."""
        return self.folder / "krb5.conf"

    def keytab(self, principal: str, *options: str) -> Path:
        """Create a principal with a random key, and return its keytab. Options are those of `addprinc`."""
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        for query in (f"addprinc -randkey {' '.join(options)} {principal}", f"ktadd -k {path} {principal}"):
            _run(self.folder, "kadmin.local", "-r", REALM, "-q", query)
        return path

    def delete(self, principal: str) -> None:
        """Delete a principal; its keytab is kept."""
        _run(self.folder, "kadmin.local", "-r", REALM, "-q", f"delprinc -force {principal}")

    def ticket(self, principal: str, *options: str) -> Path:
        """A ticket cache of a principal made by `keytab`. Options are those of kinit."""
        cache = self.folder / f"{principal}.cache"
        keytab = self.folder / f"{principal}.keytab"
        _run(self.folder, "kinit", "-c", f"FILE:{cache}", "-k", "-t", str(keytab), *options, principal)
        return cache


@contextlib.contextmanager
def kdc(folder: Path) -> Iterator[Kdc]:
    """Run a KDC with an empty realm."""
    port = free_port()
    write_client_configuration(folder / "krb5.conf", port)
    (folder / "kdc.conf").write_text(_kdc_configuration(folder, port))
    _run(folder, "kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    (folder / "kdc.log").touch()
    with Daemon([_program("krb5kdc"), "-n", "-P", folder / "kdc.pid"], _environment(folder)) as server:
        server.read("(starting)")
        yield Kdc(folder)


def write_client_configuration(path: Path, port: int) -> None:
    """Write a krb5.conf that names a KDC on loopback."""
    path.write_text(
        f"""[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
[realms]
  {REALM} = {{
    kdc = {HOST}:{port}
  }}
[domain_realm]
  localhost = {REALM}
"""
    )


def _kdc_configuration(folder: Path, port: int) -> str:
    return f"""[kdcdefaults]
  kdc_listen = {HOST}:{port}
  kdc_tcp_listen = {HOST}:{port}
[realms]
  {REALM} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
"""


def _run(folder: Path, program: str, *arguments: str) -> None:
    result = subprocess.run(
        [_program(program), *arguments],
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    # kadmin.local exits with 0 even if its query failed.
    assert result.returncode == 0, result.stderr
    assert "while" not in result.stderr, result.stderr


def _program(name: str) -> str:
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_ALSO_IN_PATH}")
    if not path:
        raise RuntimeError(f"No {name}: install MIT's Kerberos (apt-get install krb5-kdc krb5-admin-server).")
    return path


def _environment(folder: Path) -> Mapping[str, str]:
    own = {"KRB5_CONFIG": str(folder / "krb5.conf"), "KRB5_KDC_PROFILE": str(folder / "kdc.conf")}
    return {**os.environ, **own}


@dataclass(frozen=True)
class SilentKdc:
    """A KDC that receives requests and never responds."""

    environment: dict[str, str]
    """Of its clients."""
    socket: socket.socket

    def wait_for_a_request(self) -> None:
        self.socket.recv(1)


@contextlib.contextmanager
def silent_kdc(folder: Path, credentials: str) -> Iterator[SilentKdc]:
    """A KDC that never responds; the user has a ``client keytab``, or a ``ticket cache``."""
    with kdc(folder) as running:
        keytab = running.keytab("ana")
        cache = running.ticket("ana") if credentials == "ticket cache" else folder / "none.cache"
    with socket.create_server((HOST, 0)) as listener, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        port = listener.getsockname()[1]
        datagrams.bind((HOST, port))
        write_client_configuration(folder / "krb5.conf", port)
        own = {
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5CCNAME": f"FILE:{cache}",
            "KRB5_CLIENT_KTNAME": str(keytab) if credentials == "client keytab" else str(folder / "none"),
        }
        yield SilentKdc({**os.environ, **own}, datagrams)


@contextlib.contextmanager
def kerberos_metastore(
    kdc: Kdc, folder: Path, settings: Mapping[str, str] | None = None, protection: str = "privacy"
) -> Iterator[str]:
    """Run Hive Metastore 4.0.1 that requires Kerberos, as ``hive/localhost``; yield its URI."""
    own = {
        "metastore.sasl.enabled": "true",
        "metastore.kerberos.principal": f"{SERVICE}@{REALM}",
        "metastore.kerberos.keytab.file": str(kdc.folder / f"{SERVICE.replace('/', '-')}.keytab"),
        **(settings or {}),
    }
    options = [f"-Djava.security.krb5.conf={kdc.configuration}"]
    hadoop = {"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": protection}
    with standalone_metastore(folder, own, hadoop, options) as port:
        yield f"thrift://localhost:{port}"
