"""One clean-up in a process of its own, whose memory is that clean-up's: by this package, or by Lance alone.

Arguments: ``package`` or ``lance``, and the properties of a directory namespace as JSON, whose table is named
``orders``. Prints the seconds and the MB that the process grew by, as JSON.
"""

import json
import resource
import sys
import time
from datetime import timedelta

import lance

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions

NOW = timedelta(0)


def by_package(spec: NamespaceSpec) -> None:
    clean_up_versions(spec, "orders", older_than=NOW)


def by_lance(spec: NamespaceSpec) -> None:
    location = f"{spec.properties['root']}/orders.lance"
    lance.dataset(location, storage_options=spec.storage_options()).cleanup_old_versions(NOW)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    work = {"package": by_package, "lance": by_lance}[sys.argv[1]]
    namespace = NamespaceSpec("dir", json.loads(sys.argv[2]))
    namespace.connect()
    before, started = peak_mb(), time.perf_counter()
    work(namespace)
    print(json.dumps([time.perf_counter() - started, peak_mb() - before]))  # noqa: T201
