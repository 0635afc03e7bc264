"""Errors of the embedded metastore. Every message says what to do."""


class EmbeddedMetastoreError(RuntimeError):
    """Base class of this package's errors."""


class JavaUnsuitableError(EmbeddedMetastoreError):
    """There is no Java, or it is too old. Nothing was started."""


class JarsMissingError(EmbeddedMetastoreError):
    """The server's jars aren't installed, or are of a version that can't serve. Nothing was started."""


class FolderInUseError(EmbeddedMetastoreError):
    """Another metastore serves this folder; the message says which. Nothing was started."""


class MetastoreStartError(EmbeddedMetastoreError):
    """The server did not come up; the message ends with the end of its log. Nothing is left running."""
