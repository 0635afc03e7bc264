"""How Sphinx builds these pages: `./scripts/docs`."""

import os
import sys
import tempfile
from pathlib import Path

# Airflow makes its home when it is first imported: not in the home of whoever builds the pages.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-home-"))

sys.path.insert(0, str(Path(__file__).parent))  # for reference_tables

project = "airflow-provider-lancens"
copyright = "the airflow-provider-lancens developers"  # noqa: A001  (the name is Sphinx's)
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference_tables"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
default_role = "code"
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "performance/*.md"]  # the latter are parts of performance.md
suppress_warnings = ["ref.python"]  # results have a field `bytes`, which a type `bytes` may mean
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["pages.css"]
