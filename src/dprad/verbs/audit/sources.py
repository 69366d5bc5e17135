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
from importlib.machinery import ModuleSpec, PathFinder

# Folders of Python itself and of installed packages.
INSTALLED = tuple(
    {sysconfig.get_path(p) + os.sep for p in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def found(module: str, package: str | None) -> str:
    """A module that may not be loaded yet: its version, or a digest of its file and its imports."""
    if installed(module) and module.partition(".")[0] in sys.modules:
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
    spec = _spec(module, package)
    if spec is None or spec.origin is None or spec.origin.startswith(INSTALLED):
        return None
    if spec.name.partition(".")[0] == "dprad":
        return None
    try:
        return importlib.import_module(spec.name)
    except (Exception, SystemExit):  # the function itself will say what is wrong with it
        return None


def _spec(name: str, package: str | None) -> ModuleSpec | None:
    """Where a module is, without importing it or its parents."""
    try:
        full = importlib.util.resolve_name(name, package)
        spec, done = None, ""
        for part in full.split("."):
            done = f"{done}.{part}" if done else part
            places = None if spec is None else spec.submodule_search_locations
            if spec is not None and places is None:
                return None
            spec = PathFinder.find_spec(done, None if places is None else list(places))
            if spec is None:
                return None
        return spec
    except (ImportError, OSError, ValueError):
        return None


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
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:  # built in, frozen, or not loaded
        return top in sys.builtin_module_names or top in sys.stdlib_module_names
    return top == "dprad" or str(file).startswith(INSTALLED)


def of_module(name: str) -> str:
    """Version and file of an installed package; all files of the user's own package."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return sys.version
    if installed(name):
        try:
            version = importlib.metadata.version(top)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        return f"{version} {_package(getattr(sys.modules.get(top), '__file__', None))}"
    loaded = [m for m in sys.modules if m == top or m.startswith(f"{top}.")]
    return " ".join(f"{m}={_file(m)}" for m in sorted(loaded))


def _package(file: str | None) -> str:
    """All source files of an installed package, as they are now."""
    if file is None:
        return ""
    path = pathlib.Path(file)
    files = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
    text = "".join(f"{f.name}={hashed(str(f))}" for f in files)
    return hashlib.sha256(text.encode()).hexdigest()


def _file(module: str) -> str:
    return hashed(getattr(sys.modules.get(module), "__file__", None))


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
