"""Airflow connections to Lance namespaces."""
