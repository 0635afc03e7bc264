"""Plugin of the quickstart's Airflow: it answers only requests that are addressed to this machine.

A web page of anybody could otherwise have its host name resolved to 127.0.0.1, and read and change everything
here from the browser of whoever visits it.
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin
from starlette.middleware.trustedhost import TrustedHostMiddleware


class LoopbackOnly(AirflowPlugin):
    """Refuse requests with another host in their header ``Host``."""

    name = "loopback_only"
    fastapi_root_middlewares = [
        {
            "name": "loopback only",
            "middleware": TrustedHostMiddleware,
            "args": [],
            "kwargs": {"allowed_hosts": ["127.0.0.1", "localhost"], "www_redirect": False},
        }
    ]
