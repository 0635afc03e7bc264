"""What tests depend on of the installed pyarrow."""

import pyarrow as pa
from packaging.version import Version

_INSTALLED = Version(pa.__version__)
WRITES_VIEWS = Version("25") <= _INSTALLED
"""Whether it writes views of values and lists to Parquet."""
WRITES_OLD_INT96 = Version("23") <= _INSTALLED
"""Whether others read the INT96 times before 1970 that it writes."""
