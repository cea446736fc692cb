"""The same deciders on a virtual clock, and the workloads that drive them."""
