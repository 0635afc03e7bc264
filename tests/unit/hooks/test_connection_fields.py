"""The connection form is described once, for all supported Airflow versions."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

from airflow_provider_lancens.hooks.catalog_hook import LanceCatalogHook
from airflow_provider_lancens.hooks.connection_fields import extra_fields
from airflow_provider_lancens.hooks.glue import LanceGlueHook
from airflow_provider_lancens.hooks.hive import LanceHive2Hook, LanceHive3Hook
from tests.support.airflow_versions import renders_forms

HOOKS = [LanceHive2Hook, LanceHive3Hook, LanceGlueHook, LanceCatalogHook]


@pytest.fixture
def wtforms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's replacement of WTForms while it loads the hooks' forms."""
    stand_in = SimpleNamespace(
        StringField=HookMetaService.MockStringField,
        IntegerField=HookMetaService.MockIntegerField,
        PasswordField=HookMetaService.MockPasswordField,
        BooleanField=HookMetaService.MockBooleanField,
    )
    monkeypatch.setitem(sys.modules, "wtforms", stand_in)
    validators = SimpleNamespace(any_of=HookMetaService.MockEnum)
    monkeypatch.setitem(sys.modules, "wtforms.validators", validators)


@pytest.fixture(scope="module")
def forms() -> dict[str, Any]:
    """The forms of all connection types as the installed Airflow passes them to its UI."""
    return {form.connection_type: form for form in HookMetaService.hook_meta_data()}


@renders_forms
@pytest.mark.parametrize("hook", HOOKS)
def test_the_installed_airflow_renders_every_field(forms: dict[str, Any], hook: Any) -> None:
    assert set(forms[hook.conn_type].extra_fields) == set(extra_fields(hook.conn_type))


@renders_forms
@pytest.mark.parametrize("hook", HOOKS)
def test_the_installed_airflow_masks_the_secrets(forms: dict[str, Any], hook: Any) -> None:
    secret = forms[hook.conn_type].extra_fields["storage.secret_access_key"]
    assert secret["schema"]["format"] == "password"


@renders_forms
def test_the_installed_airflow_renders_a_number_field(forms: dict[str, Any]) -> None:
    pool_size = forms["lance_hive3"].extra_fields["client.pool-size"]
    assert pool_size["schema"]["title"] == "Pool size"
    assert "integer" in pool_size["schema"]["type"]


@renders_forms
@pytest.mark.parametrize(
    ("field", "choices"),
    [("client.auth", ["none", "kerberos", "plain"]), ("client.tls", ["true", "false"])],
)
def test_the_installed_airflow_renders_choices_as_a_selection(
    forms: dict[str, Any], field: str, choices: list[str]
) -> None:
    assert forms["lance_hive2"].extra_fields[field]["schema"]["enum"] == choices


@renders_forms
def test_the_installed_airflow_hides_fields_that_do_not_apply(forms: dict[str, Any]) -> None:
    hive, glue = (forms[name].standard_fields for name in ("lance_hive2", "lance_glue"))
    assert hive.url_schema.hidden
    assert hive.login.title == "User"
    assert hive.host.title == "Metastore hosts"
    assert hive.port.placeholder == "9083"
    assert glue.host.hidden
    assert glue.port.hidden
    assert glue.login.title == "Access key ID"


@pytest.mark.usefixtures("wtforms")
@pytest.mark.parametrize("hook", HOOKS)
def test_airflow_3_1_gets_a_widget_for_each_field(hook: Any) -> None:
    assert set(hook.get_connection_form_widgets()) == set(extra_fields(hook.conn_type))


@pytest.mark.usefixtures("wtforms")
def test_airflow_3_1_gets_widgets_of_the_right_kind() -> None:
    widgets = LanceHive2Hook.get_connection_form_widgets()

    assert isinstance(widgets["root"], HookMetaService.MockStringField)
    assert isinstance(widgets["client.pool-size"], HookMetaService.MockIntegerField)
    assert isinstance(widgets["client.read-timeout"], HookMetaService.MockStringField)
    assert isinstance(widgets["storage.secret_access_key"], HookMetaService.MockPasswordField)
    assert widgets["client.auth"].param.dump()["schema"]["enum"] == ["none", "kerberos", "plain"]
    assert widgets["root"].param.dump()["description"] == extra_fields("lance_hive2")["root"]["description"]


def test_airflow_3_1_gets_the_field_behavior_it_expects() -> None:
    behavior = LanceHive2Hook.get_ui_field_behaviour()

    assert set(behavior) == {"hidden_fields", "relabeling", "placeholders"}
    assert behavior["hidden_fields"] == ["schema"]
    assert LanceGlueHook.get_ui_field_behaviour()["hidden_fields"] == ["host", "port", "schema"]


@pytest.mark.parametrize("hook", HOOKS)
def test_airflow_3_1_finds_the_form_on_the_hook_class(hook: Any) -> None:
    assert {"get_ui_field_behaviour", "get_connection_form_widgets"} <= set(vars(hook))
