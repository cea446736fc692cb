"""The `laxity` command.

Exit codes: 0, all well; 1, a promise or the engine failed; 2, bad usage.
"""

import sys

from cyclopts import App
from rich.console import Console
from rich.text import Text

from laxity import __version__
from laxity.errors import ConfigError, LaxityError

app = App(
    name="laxity",
    help="Streaming that keeps its promises.",
    version=__version__,
    result_action="return_value",
)
app.command("laxity.cli.calibrate:calibrate")
app.command("laxity.cli.demo:demo")
app.command("laxity.cli.doctor:doctor")
app.command("laxity.cli.drain:drain")
app.command("laxity.cli.late:late")
app.command("laxity.cli.paper:paper")
app.command("laxity.cli.run:run")
app.command("laxity.cli.top:top")


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        code = app(sys.argv[1:])
    except LaxityError as error:
        said = Text.assemble(("error: ", "red"), str(error))  # brackets and colons as they are
        Console(stderr=True).print(said, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
