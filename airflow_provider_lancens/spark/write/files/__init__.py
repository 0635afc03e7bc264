"""Direct file ingestion: executors read files with Arrow and write Lance; Spark only schedules the tasks."""
