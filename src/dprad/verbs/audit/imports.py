"""What a function imports when it runs, and which installed packages it reaches by name."""

from __future__ import annotations

import dis
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from dprad.verbs.audit.sources import installed, standard

# Functions that import a module by its name.
_BY_NAME = {"import_module", "__import__"}
_METHODS = (staticmethod, classmethod, types.MethodType)
# Most functions and classes of installed packages that are looked at for what they name.
FAR = 2000


def imports(code: types.CodeType) -> list[tuple[str, tuple[str, ...]]]:
    """Modules (relative ones with dots) and the names taken from them, nested functions included.

    A name may be that of a submodule. A literal that is imported by its name counts too.
    """
    seen = {(module, taken) for part in nested(code) for module, taken in _own(part)}
    return sorted(seen)


def literals(code: types.CodeType) -> list[str]:
    """Texts of a function that imports modules by their names: each may be one."""
    found: set[str] = set()
    constants = (
        [c for part in nested(code) for c in part.co_consts] if _BY_NAME & names(code) else []
    )
    for constant in constants:
        inside = constant if isinstance(constant, tuple) else (constant,)
        found |= {c for c in inside if isinstance(c, str) and _dotted(c)}
    return sorted(found)


def names(code: types.CodeType) -> set[str]:
    """All names that a function mentions, nested functions included."""
    return {name for part in nested(code) for name in part.co_names}


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def package_of(space: dict[str, Any]) -> str | None:
    """The package that relative imports refer to, as Python finds it."""
    spec = space.get("__spec__")
    named = space.get("__package__") or getattr(spec, "parent", None)
    if isinstance(named, str) and named:
        return named
    name = space.get("__name__")
    if not isinstance(name, str):
        return None
    return name if "__path__" in space else name.rpartition(".")[0] or None


def _own(code: types.CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    before: list[Any] = [None, None]  # the last two instructions: level and names, or a function
    for step in dis.get_instructions(code):
        if step.opname in ("EXTENDED_ARG", "PUSH_NULL", "PRECALL"):
            continue
        if step.opname == "IMPORT_NAME":
            level, taken = (b.argval for b in before)
            base = "." * (level if isinstance(level, int) else 0) + step.argval
            yield base, tuple(taken or ())
        elif step.opname == "LOAD_CONST" and isinstance(step.argval, str):
            called = before[1] is not None and before[1].opname != "LOAD_CONST"
            if called and str(before[1].argval) in _BY_NAME and _dotted(step.argval):
                yield step.argval, ()
        before = [before[1], step]


def _dotted(text: str) -> bool:
    return all(map(str.isidentifier, text.lstrip(".").split(".")))


def reached(thing: Any) -> list[str]:
    """Installed packages that an installed function or class names, and those that they name."""
    tops: set[str] = set()
    seen: set[int] = set()
    todo = deque([thing])
    while todo and len(seen) < FAR:
        one = todo.popleft()
        home = _home(one)
        if id(one) in seen or not isinstance(home, str) or not installed(home):
            continue
        seen.add(id(one))
        top = home.partition(".")[0]
        tops.add(top)
        if top == "dprad" or standard(top):
            continue
        if isinstance(one, type):
            todo += [_inside(f) for _, f in sorted(vars(one).items()) if _followed(_inside(f))]
        elif isinstance(one, types.FunctionType):
            todo += _named(one)
    return sorted(tops)


def _home(thing: Any) -> Any:
    """The name of the module in which something was written."""
    if isinstance(thing, types.FunctionType):
        return thing.__globals__.get("__name__")
    return getattr(thing, "__name__" if isinstance(thing, types.ModuleType) else "__module__", None)


def _named(function: types.FunctionType) -> list[Any]:
    """Functions, classes and modules that a function names, also as attributes of modules."""
    space = function.__globals__
    mentioned = sorted(names(function.__code__))
    direct = [space[name] for name in mentioned if name in space]
    held = [vars(m) for m in direct if isinstance(m, types.ModuleType)]
    inside = [space[name] for space in held for name in mentioned if name in space]
    wrapped = [getattr(function, "__wrapped__", None)]
    return [_inside(x) for x in direct + inside + wrapped if _followed(_inside(x))]


def _inside(thing: Any) -> Any:
    """The function of a method."""
    thing = thing.fget if isinstance(thing, property) else thing
    return getattr(thing, "__func__", thing) if isinstance(thing, _METHODS) else thing


def _followed(thing: Any) -> bool:
    return isinstance(thing, types.FunctionType | types.ModuleType | type)
