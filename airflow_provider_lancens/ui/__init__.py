"""The Lance page in Airflow's UI: tables, their versions, who made and who awaits them.

Loaded by the API server alone. `plugin` registers it, `web_app` answers the requests.
"""
