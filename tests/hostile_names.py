"""Names as a hostile neighbor writes them: into manifests, records, tags, locations and listings."""

from hypothesis import strategies as st

_PARTS = st.sampled_from(
    [
        *(
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
        ),
        *("\x00", "\n", "\x1b[2J", "a b", "a#b", "a?b", "~", "\\", "ü", "x" * 256, "etc", "CANARY", "\u202e"),
    ]
)
_SEPARATORS = st.sampled_from(["/", "/", "//", "%2F", "%2f", "\\", "%252F"])
_SCHEMES = [
    *(
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
    ),
    *("s3+ddb://", "hf://", "file-object-store:///", "hdfs://nn/", "memory://", "oss://b/", "s3://b/"),
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
