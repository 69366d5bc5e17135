"""``python -m dprad``."""

import sys
from pathlib import Path

# Python puts the current folder first, where a file could take the place of an installed module
if sys.path and sys.path[0] in ("", str(Path.cwd())):
    sys.path.append(sys.path.pop(0))

from dprad.cli import main

main()
