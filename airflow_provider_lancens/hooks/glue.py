"""The hook to AWS Glue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk.log import mask_secret

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, airflow_errors
from airflow_provider_lancens.hooks.connection_fields import field_name, hook_of_connection_type, read_extra
from airflow_provider_lancens.hooks.lance_hook import LanceHook, read_connection
from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
    from boto3.session import Session

    from airflow_provider_lancens.namespace.metastore_namespace import MetastoreNamespace

_HIVE_ON_GLUE = (
    "spark.sql.catalogImplementation=hive, spark.hadoop.hive.metastore.client.factory.class="
    "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
)
_ENDPOINT_FIELDS = ("region", "catalog_id", "endpoint")


@hook_of_connection_type("lance_glue")
class LanceGlueHook(LanceHook):
    """Lance tables in the AWS Glue Data Catalog: two levels, ``database$table``.

    Credentials are the connection's own keys, or the keys of an ``aws`` connection, whose role is assumed
    and whose temporary credentials are renewed; otherwise the SDK's default credential chain.

    Args:
        lance_conn_id: a connection of type ``lance_glue``.
    """

    namespace_impl = "airflow_provider_lancens.namespace.GlueNamespace"
    reference_field = "aws_conn_id"

    def __init__(self, lance_conn_id: str = DEFAULT_CONNECTION, **kwargs: Any) -> None:
        super().__init__(lance_conn_id, **kwargs)
        self._made_from: dict[str, str] = {}

    async def aprepare(self) -> None:
        """Read the ``aws`` connection and assume its role, if this connection refers to one."""
        if self.reference:
            from asgiref.sync import sync_to_async  # its threads may ask Airflow's supervisor

            await sync_to_async(self._log_in)()

    def get_conn(self) -> MetastoreNamespace:
        """Return the namespace, a new one when an ``aws`` connection's temporary credentials were renewed."""
        if self.reference:
            properties = self.namespace_properties()
            if properties != self._made_from:
                self.close()
                self._namespace, self._made_from = self._new_namespace(properties), properties
        return super().get_conn()

    def hive_tables_conf(self, given: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002 the base's
        """See `LanceHook.hive_tables_conf`: Spark itself can't read a Glue catalog.

        Raises:
            AirflowFailException: always.
        """
        raise AirflowFailException(
            f"connection {self.lance_conn_id!r}, hive_tables: Spark reads the tables of a Glue catalog only "
            "with AWS's client, as on EMR and in Glue jobs; run Spark there, with these settings in "
            f"spark_conf instead of hive_tables: {_HIVE_ON_GLUE}"
        )

    def endpoint_properties(self) -> dict[str, str]:
        """Region, catalog and endpoint: the connection's own, then the ``aws`` connection's."""
        extra = read_extra(self.connection)
        own = {key: str(extra[key]) for key in _ENDPOINT_FIELDS if extra.get(key)}
        if self.reference is None:
            return own
        endpoint = {
            "region": self._session.region_name,
            "endpoint": self._aws.conn_config.get_service_endpoint_url("glue"),
        }
        return {**{key: value for key, value in endpoint.items() if value}, **own}

    def s3_properties(self) -> dict[str, str]:
        """Region and endpoint of S3: the connection's own, then the ``aws`` connection's."""
        endpoint = {} if self.reference is None else self._s3_endpoint()
        return {**endpoint, **super().s3_properties()}

    def credential_properties(self) -> dict[str, str]:
        """Return the keys that sign requests; for an ``aws`` connection the current ones, also for storage.

        Raises:
            AirflowFailException: both connections contain keys, or the role can't be assumed.
            LanceRetryableError: AWS is unavailable.
        """
        own = {"access_key_id": self.connection.login, "secret_access_key": self.connection.password}
        if self.reference is None:
            return {key: value for key, value in own.items() if value}
        if any(own.values()):
            raise AirflowFailException(
                f"connection {self.lance_conn_id!r}: {field_name(self.conn_type, 'access_key_id')} and "
                f"{field_name(self.conn_type, self.reference_field)} both contain credentials; "
                "set only one of them"
            )
        keys = self._current_keys()
        return {**keys, **self._storage_properties(keys)}

    def _current_keys(self) -> dict[str, str]:
        with self._aws_errors():
            credentials = self._session.get_credentials()
            if credentials is None:
                return {}
            frozen = credentials.get_frozen_credentials()  # renewed here if about to expire
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
        # The connection's own storage credentials take precedence, and are never mixed with these.
        if any(key.startswith(STORAGE_PREFIX) and "key" in key for key in read_extra(self.connection)):
            return {}
        return {f"{STORAGE_PREFIX}{key}": value for key, value in {**keys, **self._s3_endpoint()}.items()}

    def _s3_endpoint(self) -> dict[str, str]:
        endpoint = {
            "region": self._session.region_name,
            "endpoint": self._aws.conn_config.get_service_endpoint_url("s3"),
        }
        return {key: str(value) for key, value in endpoint.items() if value}

    def _log_in(self) -> Session:
        return self._session

    @cached_property
    def _aws(self) -> AwsBaseHook:
        from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook

        read_connection(str(self.reference))  # the amazon provider itself ignores a missing connection
        region = read_extra(self.connection).get("region") or None
        return AwsBaseHook(aws_conn_id=self.reference, client_type="glue", region_name=region)

    @cached_property
    def _session(self) -> Session:
        with self._aws_errors():
            return self._aws.get_session()

    @contextmanager
    def _aws_errors(self) -> Iterator[None]:
        from airflow_provider_lancens.namespace.glue.errors import glue_errors

        attempt = f"getting AWS credentials for connection {self.lance_conn_id!r}"
        with airflow_errors(attempt), glue_errors({}, "log in", f"aws connection {self.reference!r}"):
            yield
