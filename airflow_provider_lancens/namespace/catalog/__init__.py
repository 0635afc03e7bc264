"""Lance Namespace over any other implementation of the interface: a folder, a REST service, a class."""
