"""A function by its name, package.module:function, as in `dprad audit` and scenario files."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from dprad.errors import DpradError, told


def load(name: str, folder: Any = None) -> Any:
    """The object named package.module:name; `folder` (default: the current one) is searched if it
    is not installed.

    Errors while the module is imported become one sentence.
    """
    module, _, path = name.partition(":")
    if not module or not path or module.startswith("."):
        raise DpradError(f"give a function as package.module:function, but got {name!r}.")
    here = str(Path.cwd() if folder is None else Path(folder).resolve())
    try:
        if here not in sys.path and importlib.util.find_spec(module.partition(".")[0]) is None:
            sys.path.append(here)  # last, so that no file in it shadows an installed module
        target: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise DpradError(f"{module} cannot be imported: {told(error)}.") from None
    for part in path.split("."):
        if not hasattr(target, part):
            raise DpradError(f"{module} has nothing called {path!r}.")
        target = getattr(target, part)
    return target
