"""The Lance page in Airflow's UI: tables, their versions, and the tasks that made or await them.

Loaded by the API server alone. `plugin` registers it, `web_app` answers the requests.
"""
