"""What the engine and storage do with rows: background jobs, materialized rows, partitioning."""
