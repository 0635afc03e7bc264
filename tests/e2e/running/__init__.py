"""Tests with one running Airflow, which is started once for all of them."""
