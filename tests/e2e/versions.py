"""Features of the installed Airflow version that tests depend on."""

from airflow import __version__
from packaging.version import Version

AIRFLOW_V_3_2_PLUS = Version(__version__) >= Version("3.2")
AIRFLOW_V_3_3_PLUS = Version(__version__) >= Version("3.3")
