"""The view of a namespace whose reads write nothing."""

import pickle

from lance_namespace import connect


def test_a_view_for_reading_shares_the_connections_and_stays_one_when_it_is_pickled() -> None:
    namespace = connect(
        "airflow_provider_lancens.namespace.Hive2Namespace", {"uri": "thrift://h", "root": "/r"}
    )
    view = namespace.for_reading()  # type: ignore[attr-defined]
    assert type(view) is type(namespace)
    assert view._metastore is namespace._metastore  # type: ignore[attr-defined]
    for one, finishes in ((namespace, True), (view, False)):
        restored = pickle.loads(pickle.dumps(one))
        assert one._versions.finishes is restored._versions.finishes is finishes  # type: ignore[attr-defined]
        assert restored._repair.versions.finishes is finishes
    assert view.for_reading()._versions.finishes is False
