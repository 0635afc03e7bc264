"""Temporary credentials of a dataset for Lance's core, which asks a namespace for them.

Loaded for options that expire: otherwise executors need no client of `lance_namespace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_namespace import LanceNamespace
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.storage.vended_options import VendedOptions


@dataclass(eq=False)
class CredentialVendor(LanceNamespace):
    """A private namespace of one table, from which Lance takes current storage options."""

    location: str
    options: VendedOptions

    def namespace_id(self) -> str:
        """Return an id made of the dataset's location."""
        return f"credentials:{self.location}"

    def describe_table(self, request: Any) -> models.DescribeTableResponse:  # noqa: ARG002 there is one table
        """Return the location and the current options."""
        return models.DescribeTableResponse(location=self.location, storage_options=self.options.current())
