"""Speed, as ratios against bare Spark in the same run."""
