"""Sizes of benchmarks, and how often they repeat."""

import os

TABLES = 2000
"""Half of them Lance."""


SCALE = float(os.environ.get("LANCENS_BENCHMARK_SCALE", "1"))
"""For a first try with less: the targets are for the full size."""


ROUNDS = int(os.environ.get("LANCENS_BENCHMARK_ROUNDS", "5"))
"""In which all ways are measured in turn."""


LINEITEM_ROWS, VECTORS = int(6_000_000 * SCALE), int(200_000 * SCALE)
