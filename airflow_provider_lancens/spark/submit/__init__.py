"""Submit a job with spark-submit, and end the driver that a cluster runs."""
