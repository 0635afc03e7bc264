"""Large values: blob columns, whose bytes lie beside the data files, or in files that the table refers to."""
