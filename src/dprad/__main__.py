"""``python -m dprad``."""

from dprad.cli import main

main()
