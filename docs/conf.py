"""How Sphinx builds these pages: `./scripts/docs`."""

project = "airflow-provider-lancens"
copyright = "the airflow-provider-lancens developers"  # noqa: A001  (the name is Sphinx's)
extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
