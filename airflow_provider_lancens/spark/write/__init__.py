"""The write pipeline: request, plan, tasks on executors, fragments."""
