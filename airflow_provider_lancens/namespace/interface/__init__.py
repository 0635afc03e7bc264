"""The Lance Namespace interface: a request in, an operation, a response out."""
