"""A run of a merge as a picture: slack, latency and deadline over time, and what was read early."""

from pathlib import Path

from laxity.core.report import Report


def plot(reports: list[Report], path: Path) -> None:
    """Draw the reports of one run."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    at_s = [(report.started_us - reports[0].started_us) / 1e6 for report in reports]
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True)
    latency_s = [report.latency.max_s if report.latency else float("nan") for report in reports]
    slack_s = [report.stages["merge"]["slack_s"] for report in reports]
    above.plot(at_s, latency_s, marker=".", label="slowest result of the batch")
    if None not in slack_s:
        above.step(at_s, slack_s, where="post", label="slack")
    for promise in reports[0].promises:
        above.axhline(promise.bound, color="tab:red", linestyle="--", label=promise.name)
    above.set_ylabel("seconds")
    for mark in ("slack", "late"):
        rows = [report.stages["merge"][mark] for report in reports]
        below.step(at_s, rows, where="post", label={"slack": "read early", "late": "late"}[mark])
    below.set_ylabel("rows in the batch")
    below.set_xlabel("seconds since the start")
    for axes in (above, below):
        axes.legend(loc="upper left")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
