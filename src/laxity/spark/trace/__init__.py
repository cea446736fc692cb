"""Files or seeded generators as live streams: `format("laxity.trace")`."""
