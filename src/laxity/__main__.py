"""`python -m laxity` is the `laxity` command."""

from laxity.cli import main

main()
