"""The hook to AWS Glue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowFailException, mask_secret

from airflow_provider_lancens.hooks.base import LanceHook, read_connection
from airflow_provider_lancens.hooks.errors import airflow_errors
from airflow_provider_lancens.hooks.extras import read_extra
from airflow_provider_lancens.hooks.form import of_connection_type

if TYPE_CHECKING:
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
    from boto3.session import Session

_ENDPOINT_FIELDS = ("region", "catalog_id", "endpoint")


@of_connection_type("lance_glue")
class LanceGlueHook(LanceHook):
    """Lance tables in the AWS Glue Data Catalog: two levels, ``database$table``.

    Credentials are the connection's own keys, or those of an ``aws`` connection, whose role is assumed
    and whose temporary credentials are renewed; else what the SDK's default chain finds.

    Args:
        lance_conn_id: a connection of type ``lance_glue``.
    """

    namespace_impl = "airflow_provider_lancens.namespace.GlueNamespace"
    reference_field = "aws_conn_id"

    async def aprepare(self) -> None:
        """Read the ``aws`` connection and assume its role, where this connection refers to one."""
        if self.reference:
            from asgiref.sync import sync_to_async  # of Airflow's own: its threads may ask the supervisor

            await sync_to_async(self._log_in)()

    def endpoint_properties(self) -> dict[str, str]:
        """Region, catalog and endpoint: the connection's own, then the ``aws`` connection's."""
        extra = read_extra(self.connection)
        own = {key: str(extra[key]) for key in _ENDPOINT_FIELDS if extra.get(key)}
        if self.reference is None:
            return own
        found = {
            "region": self._session.region_name,
            "endpoint": self._aws.conn_config.get_service_endpoint_url("glue"),
        }
        return {**{key: value for key, value in found.items() if value}, **own}

    def s3_properties(self) -> dict[str, str]:
        """Region and endpoint of S3: the connection's own, then the ``aws`` connection's."""
        found = {} if self.reference is None else self._s3_place()
        return {**found, **super().s3_properties()}

    def credential_properties(self) -> dict[str, str]:
        """The keys to sign requests with; for an ``aws`` connection as they stand now, storage included.

        Raises:
            AirflowFailException: both connections hold keys, or the role can't be assumed.
            LanceRetryableError: nobody answered.
        """
        own = {"access_key_id": self.connection.login, "secret_access_key": self.connection.password}
        if self.reference is None:
            return {key: value for key, value in own.items() if value}
        if any(own.values()):
            raise AirflowFailException(
                f"connection {self.lance_conn_id!r}: its access key and extra {self.reference_field!r} both "
                "give credentials; give one of them"
            )
        keys = self._current_keys()
        return {**keys, **self._storage_properties(keys)}

    def _current_keys(self) -> dict[str, str]:
        with self._aws_errors():
            credentials = self._session.get_credentials()
            if credentials is None:
                return {}
            frozen = credentials.get_frozen_credentials()  # renews those that are about to run out
        keys = {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "session_token": frozen.token,
        }
        for secret in (frozen.secret_key, frozen.token):
            if secret:
                mask_secret(secret)
        return {key: str(value) for key, value in keys.items() if value}

    def _storage_properties(self, keys: dict[str, str]) -> dict[str, str]:
        # The connection's own storage credentials win, and are never mixed with these.
        if any(key.startswith("storage.") and "key" in key for key in read_extra(self.connection)):
            return {}
        return {f"storage.{key}": value for key, value in {**keys, **self._s3_place()}.items()}

    def _s3_place(self) -> dict[str, str]:
        found = {
            "region": self._session.region_name,
            "endpoint": self._aws.conn_config.get_service_endpoint_url("s3"),
        }
        return {key: str(value) for key, value in found.items() if value}

    def _log_in(self) -> Session:
        return self._session

    @cached_property
    def _aws(self) -> AwsBaseHook:
        from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook

        read_connection(str(self.reference))  # the amazon provider goes on without one that is missing
        region = read_extra(self.connection).get("region") or None
        return AwsBaseHook(aws_conn_id=self.reference, client_type="glue", region_name=region)

    @cached_property
    def _session(self) -> Session:
        with self._aws_errors():
            return self._aws.get_session()

    @contextmanager
    def _aws_errors(self) -> Iterator[None]:
        from airflow_provider_lancens.namespace.glue.errors import glue_errors

        attempt = f"taking credentials for connection {self.lance_conn_id!r}"
        with airflow_errors(attempt), glue_errors({}, "log in", f"aws connection {self.reference!r}"):
            yield
