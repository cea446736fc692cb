"""Run benchmarks: `./lx bench [names]`.

Each gives lines of (what, ratio, bound): a ratio against bare Spark or the naive way in the same
run, and what it must keep. Exit code 1 if one does not.
"""

import sys
from importlib import import_module

from rich.console import Console
from rich.table import Table

NAMES = ("merge", "passthrough", "replay", "revise", "state", "tuner")


def main(names: list[str]) -> int:
    unknown = set(names) - set(NAMES)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
        return 2
    table = Table(title="benchmarks", title_justify="left")
    for column in ("benchmark", "what", "measured", "must be", "ok"):
        table.add_column(column)
    well = True
    for name in names or NAMES:
        for line in import_module(f"bench.{name}").run():
            well &= line.ok
            mark = "[green]✓[/]" if line.ok else "[red]✗[/]"
            table.add_row(name, line.what, line.shown, line.bound, mark)
            Console(stderr=True).print(f"{mark} {line.what}: {line.shown}")
    Console().print(table)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
