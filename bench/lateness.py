"""Slack rules on real late data: how long rows are held, how many are read early, how many late.

    python -m bench.lateness FOLDER

FOLDER holds `lateness/d-*.csv.gz` (phones over a mobile network, with event and arrival times) and
`traffic/aarhus/*.stream.gz` (road sensors; `_id` tells the order in which rows were stored). Each
phone and each sensor is a source. Prints the table of docs/merge.md.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from laxity.core.merge import MergeTerms
from laxity.core.slack import parse_slack
from laxity.sim.merge import run

Sources = Mapping[str, Mapping[str, NDArray[np.generic]]]

SECOND_US = 1_000_000
PHONES = ("d-1", "d-2", "d-3")
RULES = ("tcp", "max-delay", "quantile", "none")


def phones(folder: Path, name: str) -> Sources:
    rows = pd.read_csv(folder / "lateness" / f"{name}.csv.gz", sep=";")
    event_us = rows["S.Client.Detection.Time"].to_numpy(np.int64) * 1000
    arrival_us = rows["S.Message.received.time.ms"].to_numpy(np.int64) * 1000
    seq = rows["S.Message.ID"].to_numpy(np.int64)
    return _by_source(rows["S.Device.ID"].to_numpy(), event_us, arrival_us, seq)


def sensors(folder: Path) -> Sources:
    """Stored in the order of `_id`, each five minutes' rows spread evenly over the next five."""
    files = sorted((folder / "traffic" / "aarhus").glob("*.stream.gz"))
    rows = pd.concat([pd.read_csv(path) for path in files]).sort_values("_id")
    event_us = pd.to_datetime(rows["TIMESTAMP"]).to_numpy("datetime64[us]").astype(np.int64)
    newest_us = np.maximum.accumulate(event_us)
    place = pd.Series(newest_us).groupby(newest_us)
    share = place.cumcount().to_numpy() / place.transform("size").to_numpy()
    arrival_us = newest_us + (share * 300 * SECOND_US).astype(np.int64)
    return _by_source(rows["REPORT_ID"].to_numpy(), event_us, arrival_us, rows["_id"].to_numpy())


def _by_source(
    source: NDArray[np.generic],
    event_us: NDArray[np.int64],
    arrival_us: NDArray[np.int64],
    seq: NDArray[np.int64],
) -> Sources:
    made = {}
    for name in np.unique(source):
        mine = np.flatnonzero(source == name)
        mine = mine[np.argsort(arrival_us[mine], kind="stable")]
        columns = {"event_us": event_us, "arrival_us": arrival_us, "seq": seq}
        made[str(name)] = {key: column[mine] for key, column in columns.items()}
    return made


def lines(
    title: str, sources: Sources, fixed: tuple[str, ...], every_us: int, idle_us: int
) -> Iterator[str]:
    idle = dict.fromkeys(sources, idle_us)
    last_us = max(int(one["arrival_us"][-1]) for one in sources.values())
    for rule in (*fixed, *RULES):
        terms = MergeTerms(parse_slack(rule), ties=frozenset(sources))
        reads = run(sources, terms, every_us, idle, until_us=last_us + 2 * idle_us)
        held_s = reads.latency_us / SECOND_US
        n_rows = reads.mark.size
        yield (
            f"| {title} | {rule} | {held_s.mean():.2f} | {np.quantile(held_s, 0.99):.2f} "
            f"| {reads.n_slack / n_rows:.1%} | {reads.n_late / n_rows:.2%} |"
        )


def main(folder: Path) -> None:
    print("| data | slack | held, mean s | held, p99 s | read early | read late |")
    print("|---|---|--:|--:|--:|--:|")
    for name in PHONES:
        sources = phones(folder, name)
        shown = f"phones {name}"
        for line in lines(shown, sources, ("0s", "1s", "5s"), SECOND_US // 10, 10 * SECOND_US):
            print(line, flush=True)
    for line in lines(
        "sensors", sensors(folder), ("0s", "5min", "15min"), 300 * SECOND_US, 1800 * SECOND_US
    ):
        print(line, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
