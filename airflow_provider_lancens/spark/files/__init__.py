"""The direct way: executors read files with Arrow and write Lance; Spark only hands out the work."""
