"""Seeded streams that look like the real ones: traffic, electricity meters, taxis, tweets.

A workload is a function from a seed to columns of equal length in order of arrival: `event_us`,
`arrival_us` and the data. The same arguments give the same rows for ever; `delay` is an option
string of `laxity.core.delays.parse_delay`.
"""

from laxity.sim.workload.mentions import tweets
from laxity.sim.workload.metering import meters
from laxity.sim.workload.traffic import bus, scats
from laxity.sim.workload.trips import taxi

__all__ = ["bus", "meters", "scats", "taxi", "tweets"]
