"""``python -m dprad``."""

from dprad.show.cli import main

main()
