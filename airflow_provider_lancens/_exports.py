"""Lazy exports of a package (PEP 562): a public name loads its module when it is first used.

``from airflow_provider_lancens.operators import LanceDropTableOperator`` loads only one module of operators,
so a DAG file loads only what it imports.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Args:
        package: the package's ``__name__``.
        modules: public name -> the module below the package that defines it.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)  # so that it is resolved only once
        return value

    return load
