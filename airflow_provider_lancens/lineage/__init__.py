"""Inputs and outputs of tasks, for OpenLineage."""
