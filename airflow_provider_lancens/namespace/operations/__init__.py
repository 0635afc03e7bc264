"""Operations of the Lance Namespace specification, implemented once over a Metastore."""
