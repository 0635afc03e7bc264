"""The SDK's client of Glue: made by the first call, one for all threads of a process."""

from __future__ import annotations

import os
import threading
from typing import Any

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.glue.settings import GlueSettings


class GlueClient:
    """Makes a boto3 client when it is first needed, and again in a forked process."""

    def __init__(self, settings: GlueSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._making = threading.Lock()
        self._made: tuple[int, Any] | None = None

    def get(self) -> Any:
        """The client; it is thread-safe, its making isn't.

        Raises:
            InvalidInputError: (13) the endpoint or the region can't be one.
            botocore.exceptions.BotoCoreError: no region, or a profile that doesn't exist.
        """
        with self._making:
            # Forked: the sockets are the parent's too, and two speakers on one would mix answers.
            if self._made is None or self._made[0] != os.getpid():
                self._made = os.getpid(), self._make()
            return self._made[1]

    def close(self) -> None:
        """Give up idle connections; the next call makes a new client."""
        with self._making:
            made, self._made = self._made, None
        if made and made[0] == os.getpid():
            made[1].close()

    def _make(self) -> Any:
        import boto3  # takes half a second: only where a catalog is spoken to
        from botocore.config import Config

        settings, credentials = self._settings, self._settings.credentials
        session = boto3.session.Session(
            aws_access_key_id=credentials and credentials.access_key_id,
            aws_secret_access_key=credentials and credentials.secret_access_key,
            aws_session_token=credentials and credentials.session_token,
            region_name=settings.region,
        )
        config = Config(
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            retries={"mode": "adaptive", "total_max_attempts": settings.max_attempts},
        )
        try:
            return session.client("glue", endpoint_url=settings.endpoint, config=config)
        except ValueError as error:  # what the SDK says of a host or a region that can't be one
            raise InvalidInputError(f"{settings}: {error}; check 'endpoint' and 'region'") from error
