"""A metastore in memory, of any size, that counts the calls it gets."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from lance_namespace.errors import NamespaceNotFoundError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.batch_reads import BatchRead
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable

BATCH = 100
ROOT = NamespaceId(())


class LargeCatalog:
    """Databases of Lance tables; each table is made when it is read, as one that comes over the wire.

    Args:
        databases: number of tables by database.
        parameter_bytes: length of a parameter of each table.
    """

    namespace_levels = 1

    def __init__(self, databases: dict[str, int], parameter_bytes: int = 0) -> None:
        self.tables = {
            database: {f"t_{number:06}" for number in range(count)} for database, count in databases.items()
        }
        self.calls: Counter[str] = Counter()
        self._parameter_bytes = parameter_bytes

    def check_name(self, name: str) -> None:
        pass

    def get_namespace(self, namespace: NamespaceId) -> object:
        self.calls["get_namespace"] += 1
        return self.tables if namespace == ROOT else self._names(namespace)

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        self.calls["list_namespaces"] += 1
        return list(self.tables)

    def list_tables(self, namespace: NamespaceId) -> Sequence[str]:
        self.calls["list"] += 1
        return list(self._names(namespace))

    list_lance_tables = list_tables

    def get_tables(
        self, namespace: NamespaceId, names: Collection[str], *, columns: bool = True
    ) -> Iterator[BatchRead]:
        wanted = list(names)
        for start in range(0, len(wanted), BATCH):
            self.calls["read"] += 1
            there = [name for name in wanted[start : start + BATCH] if name in self._names(namespace)]
            yield BatchRead([self._table(namespace, name) for name in there])

    def scan_tables(self, namespace: NamespaceId, *, lance_only: bool = False) -> Iterator[BatchRead]:
        return self.get_tables(namespace, self.list_tables(namespace))

    def _names(self, namespace: NamespaceId) -> set[str]:
        if namespace.name not in self.tables:
            raise NamespaceNotFoundError(f"no namespace {namespace}")
        return self.tables[namespace.name]

    def _table(self, namespace: NamespaceId, name: str) -> CatalogTable:
        parameters = {"table_type": "lance", "comment": "x" * self._parameter_bytes + name}
        return CatalogTable(namespace.table(name), f"file:/lake/{name}.lance", parameters, created=1)
