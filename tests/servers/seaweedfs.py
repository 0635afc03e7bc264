"""SeaweedFS: an object store with S3's interface that others wrote, built with Go once per machine."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers.cache import made_once
from tests.servers.hadoop import free_port

MODULE = "github.com/seaweedfs/seaweedfs"
VERSION = "v0.0.0-20261109003541-7506e5f91cd6"
BUCKET = "lake"
BUILD_SECONDS = 3600
START_SECONDS = 120
_KEY, _SECRET = "tester", "tester-secret"
_IDENTITIES = {
    "identities": [
        {
            "name": "tester",
            "credentials": [{"accessKey": _KEY, "secretKey": _SECRET}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }
    ]
}


@contextmanager
def seaweedfs(folder: Path) -> Iterator[dict[str, str]]:
    """Run a server with a bucket `BUCKET`; yield Lance's storage options for it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "identities.json").write_text(json.dumps(_IDENTITIES))
    ports = {name: free_port() for name in ("master", "volume", "filer", "s3")}
    command = [_program(), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3"]
    command += [f"-{name}.port={port}" for name, port in ports.items()]
    command += [f"-{name}.port.grpc={free_port()}" for name in ports]
    command += [f"-s3.config={folder / 'identities.json'}", "-master.volumeSizeLimitMB=64", "-volume.max=50"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        endpoint = f"http://127.0.0.1:{ports['s3']}"
        _create_bucket(endpoint, server, folder / "log")
        yield {
            "aws_endpoint": endpoint,
            "aws_region": "us-east-1",
            "allow_http": "true",
            "aws_access_key_id": _KEY,
            "aws_secret_access_key": _SECRET,
        }
    finally:
        server.terminate()
        server.wait()


def _create_bucket(endpoint: str, server: "subprocess.Popen[Any]", log: Path) -> None:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    client: Any = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=_KEY,
        aws_secret_access_key=_SECRET,
    )
    until = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < until:
        try:
            client.create_bucket(Bucket=BUCKET)
            client.put_object(Bucket=BUCKET, Key="ready", Body=b"")
        except (BotoCoreError, ClientError):
            time.sleep(0.5)
        else:
            return
    raise RuntimeError(f"SeaweedFS did not start:\n{log.read_text()[-3000:]}")


def _program() -> str:
    return str(made_once(f"seaweedfs-{VERSION}", _build, lock="go-lock") / "weed")


def _build(folder: Path) -> None:
    go = shutil.which("go")
    if not go:
        raise RuntimeError("No go in PATH: install Go, with which SeaweedFS is built.")
    module = json.loads(_output(go, "mod", "download", "-json", f"{MODULE}@{VERSION}"))
    folder.mkdir()
    _output(go, "build", "-trimpath", "-o", str(folder / "weed"), "./weed", folder=module["Dir"])


def _output(*command: str, folder: str | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return done.stdout
