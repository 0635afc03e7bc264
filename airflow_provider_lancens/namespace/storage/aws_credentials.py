"""Credentials for S3 from profiles, SSO and ``credential_process``, which the object store's library lacks.

Lance reads them by the chain of AWS's SDK. For this package's own requests boto3 does, where it is installed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.redaction import redact

_GIVEN = frozenset({"access_key_id", "secret_access_key", "session_token", "token", "skip_signature"})
"""Options that decide how requests are signed, without their prefix."""
_KNOWN_TO_STORES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Variables of the environment from which the object store's library takes credentials itself."""
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}
_INSTANCE_METADATA = "iam-role"
_LIFETIME = timedelta(minutes=5)
"""Less than the time before their end at which boto3 renews credentials."""


def credential_provider(options: Mapping[str, str]) -> Any | None:
    """Return what signs requests by boto3's chain of credentials; None leaves that to the store's library.

    Args:
        options: Lance's storage options.

    Raises:
        InvalidInputError: (13) the environment selects a profile that isn't configured.
        UnauthenticatedError: (16) the selected profile has no credentials.
    """
    if _GIVEN & {key.removeprefix("aws_") for key in options} or any(map(os.environ.get, _KNOWN_TO_STORES)):
        return None
    profile = next((value for name in _PROFILES if (value := os.environ.get(name))), None)
    files = tuple(os.environ.get(name) or default for name, default in _FILES.items())
    if profile is None and not any(Path(file).expanduser().is_file() for file in files):
        return None
    return _provider(profile, *files)


@functools.lru_cache(maxsize=16)
def _provider(profile: str | None, *files: str) -> Any | None:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ProfileNotFound
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:  # boto3 is optional on executors
        return None
    try:
        session = boto3.Session(profile_name=profile)
    except ProfileNotFound as error:
        raise spec_errors.InvalidInputError(
            f"AWS_PROFILE={profile!r}: expected a profile that is configured in {' or '.join(files)}"
        ) from error
    # The object store itself requests instance metadata; boto3's request hangs where there is none.
    session._session.get_component("credential_provider").remove(_INSTANCE_METADATA)
    try:
        if session.get_credentials() is not None:
            return Boto3CredentialProvider(session, ttl=_LIFETIME)
    except BotoCoreError as error:
        raise spec_errors.UnauthenticatedError(
            f"the credentials of AWS_PROFILE={profile!r} could not be read: {redact(str(error))}"
        ) from None  # the cause may contain the output of a credential process
    if profile is None:
        return None
    raise spec_errors.UnauthenticatedError(
        f"AWS_PROFILE={profile!r}: the profile has no credentials; add them in {' or '.join(files)}, or set "
        "storage.access_key_id and storage.secret_access_key"
    )
