"""Release sets: versions of several tables that belong together, as the rows of a table of their own."""
