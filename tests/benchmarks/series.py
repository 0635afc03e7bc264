"""The names of series, as the plots and tables of docs/performance.md show them."""

LABELS = {
    "direct": "files to Lance",
    "frame": "DataFrame to Lance",
    "parquet": "Spark to Parquet",
    "pylance": "pylance, one process",
    "connector": "lance-spark connector",
    "upsert": "upsert",
    "delta, rewriting files": "Delta Lake MERGE",
    "delta, deletion vectors": "Delta Lake MERGE, deletion vectors",
    "iceberg, rewriting files": "Iceberg MERGE",
    "iceberg, merging on read": "Iceberg MERGE, merge-on-read",
    "look up an old key": "look up an old key (a rerun)",
    "append": "append of one row",
    "decide": "decide whether to compact",
    "plan": "plan a cascade",
    "poll": "poll 100 waits",
    "shared": "shared poll",
    "naive": "a naive trigger for each wait",
    "calls, shared": "calls of the shared poll",
    "calls, naive": "calls of naive triggers",
}
"""Names that differ from those in the figures."""
PEERS = {"parquet", "pylance", "connector", "naive", "calls, naive"}
"""Those of them that are no part of this package; so is everything by, or for, another library."""
OF_PEERS = ("by pylance", "by bare Thrift", "by the peer", "delta,", "iceberg,")
NAMES_OF_PEERS = {"by the peer": "by lance-namespace-impls"}


_ONE_TASK = " by one task"


def label_of(name: str) -> str:
    """Return what the legend says."""
    if name.endswith(_ONE_TASK):
        return label_of(name.removesuffix(_ONE_TASK)) + _ONE_TASK
    label = LABELS.get(name, name)
    for written, shown in NAMES_OF_PEERS.items():
        label = label.replace(written, shown)
    return label


def is_peer(name: str) -> bool:
    """Whether a series is of another library, for comparison."""
    return name in PEERS or any(part in name for part in OF_PEERS)
