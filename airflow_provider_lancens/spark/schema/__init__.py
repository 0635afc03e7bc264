"""Changes of a table's columns: merged with those of rows, or made on their own."""
