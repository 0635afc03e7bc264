"""Which storage options a connection may have: known options, and further options that airflow.cfg allows.

Whoever edits a connection chooses its options, and the processes of Airflow act on them with their own
permissions: some options make them read a file, run a command, or send their own tokens to a host of the
editor's choice. Such options, and unknown ones, need the consent of the administrator, in airflow.cfg.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence

from airflow.configuration import conf

from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX

SECTION, OPTION = "lancens", "allowed_storage_options"

_ENDPOINT = "endpoint"
_TRUE = ("true", "1", "yes", "y", "on")


def _names(text: str, *prefixes: str) -> frozenset[str]:
    return frozenset(prefix + name for name in text.split() for prefix in ("", *prefixes))


_CLIENT = _names(
    "allow_http connect_timeout default_content_type http1_only http2_keep_alive_interval "
    "http2_keep_alive_timeout http2_keep_alive_while_idle http2_max_frame_size http2_only pool_idle_timeout "
    "pool_max_idle_per_host randomize_addresses read_timeout timeout user_agent",
    "aws_",
    "azure_",
    "google_",
) | _names("client_max_retries client_retry_timeout download_retry_count request_timeout")
_S3 = _names(
    "access_key_id secret_access_key session_token token default_region region bucket bucket_name endpoint "
    "endpoint_url endpoint_url_s3 role_arn role_session_name imdsv1_fallback checksum_algorithm "
    "conditional_put copy_if_not_exists disable_bulk_delete disable_tagging request_payer s3_express "
    "server_side_encryption skip_signature sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id "
    "unsigned_payload virtual_hosted_style_request",
    "aws_",
)
_AZURE = _names(
    "access_key account_key account_name authority_id bearer_token client_id client_secret container_name "
    "credential_type disable_tagging encryption_key fabric_cluster_identifier fabric_session_token "
    "master_key msi_resource_id object_id sas_key sas_token skip_signature tenant_id token use_emulator "
    "use_fabric_endpoint",
    "azure_",
    "azure_storage_",
)
_AZURE_ENDPOINTS = frozenset({"azure_endpoint", "azure_storage_endpoint"})
_GOOGLE = _names("bearer_token bucket bucket_name service_account_key skip_signature", "google_") | {
    "google_storage_token"
}
_GOOGLE_ENDPOINTS = frozenset({"base_url", "google_base_url"})

_BY_SCHEME: Mapping[str, frozenset[str]] = {
    "every scheme": _CLIENT,
    "s3://": _S3,
    "az://, abfss://": _AZURE,
    "gs://": _GOOGLE,
}
# Options that the object store prefers to the process's own credentials; a SAS token isn't among them.
_AZURE_CREDENTIALS = (
    *({name} for name in ("access_key", "account_key", "master_key", "token", "bearer_token")),
    {"client_id", "client_secret", "tenant_id"},
)
_GOOGLE_CREDENTIALS = tuple({name} for name in ("service_account_key", "bearer_token", "storage_token"))
_NEEDS_CREDENTIALS = {
    **dict.fromkeys(_AZURE_ENDPOINTS, _AZURE_CREDENTIALS),
    **dict.fromkeys(_GOOGLE_ENDPOINTS, _GOOGLE_CREDENTIALS),
}
"""Azure and Google take tokens that whoever receives them can use; S3 takes signatures for one host."""
_PREFIX = re.compile(r"azure_(?:storage_)?|google_")
_EFFECTS = {
    "names a file": re.compile(r".*(?:_file|_path)|(?:google_)?(?:service_account|application_credentials)"),
    "runs a command": re.compile(r"(?:azure_)?use_azure_cli"),
    "names an authority": re.compile(r".*(?:authority_host|endpoint_url_sts|sts_endpoint|token_service_url)"),
    "names a source of credentials": re.compile(
        r".*(?:metadata_endpoint|msi_endpoint|identity_endpoint|credentials_(?:relative|full)_uri"
        r"|workload_host|profile)"
    ),
    "lets others between Airflow and the storage": re.compile(
        r"(?:aws_|azure_|google_)?(?:proxy_\w+|allow_invalid_certificates|root_certificate|default_headers)"
    ),
}


def refusal(name: str, options: Mapping[str, str]) -> str | None:
    """Return why a connection may not have a storage option, or None if it may.

    Args:
        name: the option, without the prefix ``storage.``; Lance ignores its case.
        options: all storage options of the connection, by such names.
    """
    key = name.lower()
    if key in _allowed() or any(key in names for names in _BY_SCHEME.values()):
        return None
    needed = _NEEDS_CREDENTIALS.get(key)
    if needed is None:
        reason = next((effect for effect, names in _EFFECTS.items() if names.fullmatch(key)), "is unknown")
        return f"{reason}{_suggestion(key) if reason == 'is unknown' else ''}; allowed: {_consent(key)}"
    if _has_credentials(needed, options):
        return None
    return (
        "would receive tokens of Airflow's processes; allowed: with a key or a token in this connection, "
        f"or {_consent(key)}"
    )


def endpoint_of_s3_alone(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with an ``endpoint`` that Azure ignores if they have no key or token for Azure.

    Both S3 and Azure read ``endpoint``; Azure would send a token of Airflow's processes there.
    """
    if _has_credentials(_AZURE_CREDENTIALS, options) or "azure_endpoint" in _allowed():
        return dict(options)
    return {f"aws_{_ENDPOINT}" if key.lower() == _ENDPOINT else key: value for key, value in options.items()}


def _allowed() -> frozenset[str]:
    listed = conf.get(SECTION, OPTION, fallback="") or ""
    return frozenset(
        name.lower().removeprefix(STORAGE_PREFIX) for name in re.split(r"[\s,]+", listed) if name
    )


def _has_credentials(kinds: Sequence[Collection[str]], options: Mapping[str, str]) -> bool:
    given = {_PREFIX.sub("", key.lower()): value.strip() for key, value in options.items()}
    if given.get("skip_signature", "").lower() in _TRUE:
        return True
    return any(all(given.get(name) for name in kind) for kind in kinds)


def _consent(key: str) -> str:
    return f"if the administrator lists {key} in airflow.cfg, section [{SECTION}], {OPTION}"


def _suggestion(key: str) -> str:
    known = sorted(frozenset[str]().union(*_BY_SCHEME.values()))
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.8)
    return f" (did you mean {close[0]}?)" if close else ""
