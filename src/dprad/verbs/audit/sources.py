"""Source code as it is now: files of modules, of packages, and of what they import."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import sys
import sysconfig
import types
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from typing import Any

# What folders of installed packages are called, and which there are; those of Python itself, too.
PACKAGES = ("site-packages", "dist-packages")
INSTALLED = tuple(
    {sysconfig.get_path(p) + os.sep for p in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {p.rstrip(os.sep) + os.sep for p in sys.path if pathlib.PurePath(p).name in PACKAGES}
)
# Folders of Python itself alone.
PYTHON = (*(sysconfig.get_path(p) + os.sep for p in ("stdlib", "platstdlib")),
          os.path.dirname(os.__file__) + os.sep)  # fmt: skip  # noqa: PTH120


def found(module: str, package: str | None) -> str:
    """A module that may not be loaded yet: its version, or a digest of its file and its imports."""
    if not module.startswith(".") and installed(module):
        return of_module(module)
    seen: dict[str, str] = {}
    todo = [(module, package)]
    while todo:
        name, home = todo.pop()
        spec = _spec(name, home)
        if spec is None or spec.origin is None or spec.name in seen:
            continue
        seen[spec.name] = hashed(spec.origin)
        if not spec.origin.startswith(INSTALLED) and spec.origin.endswith(".py"):
            todo += [(inner, spec.parent) for inner in _named_imports(spec.origin)]
    return " ".join(f"{name}={seen[name]}" for name in sorted(seen))


def own_module(module: str, package: str | None) -> types.ModuleType | None:
    """One of the user's own modules, loaded as the function that imports it would load it."""
    full = _full(module, package)
    loaded = sys.modules.get(full)
    if loaded is not None:
        file = _about(full, "__file__") or ""
        return None if file.startswith(INSTALLED) or installed(full) else loaded
    spec = _spec(module, package)
    if spec is None or full.partition(".")[0] == "dprad" or spec.origin in ("built-in", "frozen"):
        return None
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    if not places or all(place.startswith(INSTALLED) for place in places):
        return None
    try:
        return importlib.import_module(full)
    except (Exception, SystemExit):  # the function itself will say what is wrong with it
        return None


def _full(name: str, package: str | None) -> str:
    """The whole name of a module; empty if there is none."""
    try:
        return importlib.util.resolve_name(name, package)
    except (ImportError, ValueError):
        return ""


def _spec(name: str, package: str | None) -> ModuleSpec | None:
    """Where a module is, without importing it or its parents."""
    spec, done = None, ""
    for part in _full(name, package).split("."):
        done = f"{done}.{part}" if done else part
        places = None if spec is None else spec.submodule_search_locations
        places = _about(spec.name if spec else "", "__path__") or places
        if not part or (spec is not None and places is None):
            return None
        spec = _look(done, places)
        if spec is None:
            return None
    return spec


def _look(full: str, places: Iterable[str] | None) -> ModuleSpec | None:
    """A module that is loaded, or what the first finder that knows it says (as Python asks)."""
    spec = _about(full, "__spec__")
    if isinstance(spec, ModuleSpec):
        return spec
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(full, None if places is None else list(places))
        except Exception:  # one of somebody else, of an older kind or broken
            continue
        if isinstance(spec, ModuleSpec):
            return spec
    return None


def _about(full: str, name: str) -> Any:
    """What a loaded module says of itself; it is not asked, since it may answer by code."""
    return getattr(sys.modules.get(full), "__dict__", {}).get(name)


def _named_imports(path: str) -> set[str]:
    """Modules that a source file imports, anywhere in it."""
    try:
        tree = ast.parse(pathlib.Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            names.add(base or ".")
            names |= {f"{base}.{a.name}" if node.module else f"{base}{a.name}" for a in node.names}
    return names - {"__future__"}


def installed(module: str | None) -> bool:
    """Whether a module is part of Python or dprad, or was installed."""
    top = (module or "builtins").partition(".")[0]
    if top == "__main__":
        return False
    if top == "dprad" or standard(top):
        return True
    places = _places(top)
    return bool(places) and all(place.startswith(INSTALLED) for place in places)


def standard(top: str) -> bool:
    """Whether a module is part of Python, by where it is: one's own may have the same name."""
    if top not in sys.stdlib_module_names:
        return False
    places = _places(top)
    if top in sys.modules and not places:  # compiled into Python, or made while running
        spec = _about(top, "__spec__")
        return isinstance(spec, ModuleSpec) and spec.origin in ("built-in", "frozen")
    return all(
        place in ("built-in", "frozen")
        or (place.startswith(PYTHON) and not set(PACKAGES) & set(pathlib.Path(place).parts))
        for place in places
    )


def _places(top: str) -> list[str]:
    """The file of a module, or the folders of a package without one; empty if neither is known."""
    loaded = sys.modules.get(top)
    spec = _look(top, None) if loaded is None else None
    file = _about(top, "__file__") if spec is None else spec.origin
    path = _about(top, "__path__") if spec is None else spec.submodule_search_locations
    return [str(p) for p in ([file] if file else path or ())]


def of_module(name: str) -> str:
    """Version and file of an installed package; all files of the user's own package."""
    top = name.partition(".")[0]
    if standard(top):
        return sys.version
    if installed(name):
        try:
            version = importlib.metadata.version(top)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        return f"{version} {' '.join(map(_package, _places(top)))}"
    loaded = [m for m in sys.modules if m == top or m.startswith(f"{top}.")]
    return " ".join(f"{m}={_file(m)}" for m in sorted(loaded))


def _package(place: str) -> str:
    """All source files of an installed package, as they are now."""
    path = pathlib.Path(place)
    folder = path.parent if path.name == "__init__.py" else path
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [path]
    text = "".join(f"{f.name}={hashed(str(f))}" for f in files)
    return hashlib.sha256(text.encode()).hexdigest()


def _file(module: str) -> str:
    return hashed(_about(module, "__file__"))


def hashed(path: str | None) -> str:
    """The digest of the current content of a file."""
    if path is None:
        return ""
    try:
        about = pathlib.Path(path).stat()
        return _read(path, about.st_mtime_ns, about.st_size, about.st_ino)
    except OSError:
        return ""


@functools.lru_cache(maxsize=65536)
def _read(path: str, *_: int) -> str:
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
