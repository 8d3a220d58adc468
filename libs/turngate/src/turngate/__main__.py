"""`python -m turngate` is `turngate`."""

from turngate.cli import main

main()
