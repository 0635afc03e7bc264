"""The application behind the Lance page: static files and `routes`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from airflow_provider_lancens.ui.open_hooks import OpenHooks
from airflow_provider_lancens.ui.reader_threads import ReaderThreads
from airflow_provider_lancens.ui.routes import create_router

_STATIC = Path(__file__).parent / "static"
_HEADERS = {
    # Only the page's own files are executed: markup in the name of a table or in a value does nothing.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def create_app() -> FastAPI:
    """Return the application. It has no route that changes anything."""
    app = FastAPI(title="Lance", docs_url=None, redoc_url=None, openapi_url=None)
    app.middleware("http")(_with_headers)
    app.include_router(create_router(OpenHooks(), ReaderThreads()), prefix="/api")
    app.mount("/static", StaticFiles(directory=_STATIC))
    app.add_api_route("/", _index, methods=["GET"], response_class=FileResponse)
    return app


async def _index() -> FileResponse:
    return FileResponse(_STATIC / "index.html")


async def _with_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers.update(_HEADERS)
    return response
