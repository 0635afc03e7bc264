"""Tests on one running Airflow, which is started once for all of them, and ended with the last."""
