"""Names as a hostile neighbor writes them: into manifests, records, tags, locations and listings."""

from hypothesis import strategies as st

_PARTS = st.sampled_from(
    [
        "..",
        ".",
        "",
        "data",
        "_versions",
        "canary",
        "x.lance",
        "%2e%2e",
        "%2E.",
        "%2F",
        "%252e%252e",
        "%00",
        "\x00",
        "\n",
        "\x1b[2J",
        "a b",
        "a#b",
        "a?b",
        "~",
        "\\",
        "ü",
        "x" * 256,
        "etc",
        "CANARY",
        "\u202e",
    ]
)
_SEPARATORS = st.sampled_from(["/", "/", "//", "%2F", "%2f", "\\", "%252F"])
_SCHEMES = [
    "",
    "/",
    "file:",
    "FILE://",
    "file:///",
    "file://localhost/",
    "file://evil/",
    "s3://",
    "S3A://b/",
    "http://",
    "s3+ddb://",
    "hf://",
    "file-object-store:///",
    "hdfs://nn/",
    "memory://",
    "oss://b/",
    "s3://b/",
]


def file_names() -> st.SearchStrategy[str]:
    """Names of files below a table, most of which mean another one."""
    return st.builds(
        _joined, st.sampled_from(["", "", "/", "../", "data/"]), st.lists(_PARTS, min_size=1), _SEPARATORS
    )


def locations() -> st.SearchStrategy[str]:
    """Locations of tables, most of which must not be used."""
    return st.builds(
        _joined, st.sampled_from(_SCHEMES), st.lists(_PARTS, min_size=1, max_size=5), _SEPARATORS
    )


def _joined(prefix: str, parts: list[str], separator: str) -> str:
    return prefix + separator.join(parts)


FILE_NAMES = {
    "another table": "../../canary.lance",
    "encoded": "..%2F..%2Fcanary.lance%2Fdata",
    "encoded twice": "%252e%252e%252fvictim",
    "in upper case": "%2E%2E%2Fvictim",
    "parent": "..",
    "empty once decoded": "%00",
    "absolute": "/etc/passwd",
    "encoded absolute": "%2Fetc%2Fpasswd",
    "NUL": "a\x00b",
    "line end": "a\nb",
    "escape": "\x1b[2J",
    "direction": "\u202evictim",
    "backslash": "..\\victim",
    "number sign": "a#1",
    "question mark": "a?b",
    "another scheme": "s3://bucket/victim",
    "digits of another script": "\u0663",
    "a huge number": "9" * 40,
    "negative": "-1",
    "infinite": "Infinity",
    "long": "x" * 240,
    "upper case": "VICTIM",
    "space": " a ",
}
"""Kinds of names of files that another client writes, see `tests/unit/spark/test_hostile_files.py`."""
