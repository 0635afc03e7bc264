"""Who reaches the quickstart's Airflow: this machine, with the password that it prints."""

import http.client
import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from quickstart.home import Home
from quickstart.servers import AirflowServers

pytestmark = pytest.mark.thorough
LOOPBACK = {"0100007F", "0" * 24 + "01000000", "0" * 16 + "FFFF00000100007F"}
LISTENING = "0A"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowServers]:
    home = Home(tmp_path_factory.mktemp("home"))
    patch = pytest.MonkeyPatch()
    for name, value in home.environment.items():
        patch.setenv(name, value)
    home.migrate()
    with AirflowServers(home, password="open sesame") as running:
        deadline = time.monotonic() + 300
        while not running.healthy() and time.monotonic() < deadline:
            running.check()
            time.sleep(1)
        yield running
    patch.undo()


def status(servers: AirflowServers, path: str, host: str) -> int:
    address = urlsplit(servers.url)
    asking = http.client.HTTPConnection(str(address.hostname), int(address.port or 0), timeout=30)
    asking.request("GET", path, headers={"Host": host})
    answer = asking.getresponse()
    asking.close()
    return answer.status


def test_another_host_name_is_refused(servers: AirflowServers) -> None:
    port = urlsplit(servers.url).port
    assert status(servers, "/api/v2/version", f"127.0.0.1:{port}") == 200
    assert status(servers, "/api/v2/version", f"localhost:{port}") == 200
    for host in (f"attacker.example:{port}", "127.0.0.1.attacker.example", f"[::]:{port}"):
        assert status(servers, "/api/v2/version", host) == 400


def test_nobody_is_an_administrator_without_the_password(servers: AirflowServers) -> None:
    host = urlsplit(servers.url).netloc
    assert status(servers, "/auth/token", host) in (401, 403)
    assert status(servers, "/api/v2/connections", host) == 401
    assert servers.get("/api/v2/connections")["total_entries"] >= 0
    passwords = servers._home.airflow / "passwords.json"
    assert passwords.stat().st_mode & 0o777 == 0o600


def test_every_server_listens_on_loopback_alone(servers: AirflowServers) -> None:
    assert servers.healthy()
    ours = _descendants(os.getpid())
    inodes = {inode for pid in ours for inode in _sockets(pid)}
    addresses = {
        fields[1].rpartition(":")[0]
        for table in ("tcp", "tcp6")
        for fields in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines()[1:])
        if fields[3] == LISTENING and fields[9] in inodes
    }
    assert addresses
    assert addresses <= LOOPBACK


def _descendants(pid: int) -> set[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _sockets(pid: int) -> Iterator[str]:
    try:
        links = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return
    yield from (link[8:-1] for link in links if link.startswith("socket:["))
