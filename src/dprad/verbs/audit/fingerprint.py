"""Which audit a state file belongs to: a digest of everything visible in what is run.

For a function: its code, defaults, closure, and the globals it names, followed into the user's own
helpers, classes and modules, and everything in them. For an object: its class and its attributes.
For installed packages: name, version, file. What cannot be seen (a library behind a C function, a
file that is read, a server) is not covered: recorded calls are run again (`trials.Job.replay`).
"""

from __future__ import annotations

import contextvars
import enum
import functools
import gc
import hashlib
import logging
import pathlib
import random
import re
import sys
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dprad.errors import kind as name_of
from dprad.mechanisms.black_box import BlackBox
from dprad.verbs.audit.imports import imports, literals, names, package_of, reached
from dprad.verbs.audit.sources import INSTALLED, found, hashed, installed, of_module, own_module

if TYPE_CHECKING:
    from dprad.verbs.audit.plan import Plan

T = TypeVar("T")
# Most looks at a function whose imports load modules.
ROUNDS = 5
# Attributes of a class that do not affect its behaviour.
_MACHINERY = {
    "__name__", "__doc__", "__package__", "__loader__", "__spec__", "__path__", "__file__",
    "__cached__", "__builtins__", "__annotations__", "__warningregistry__",
}  # fmt: skip
_SILENT = {
    "__slotnames__",
    "__dict__",
    "__weakref__",
    "__doc__",
    "__module__",
    "__annotations__",
    "__slots__",
}
# Attributes of a function that are covered elsewhere, or do not matter.
_PLAIN = {bool, int, str, bytes, complex, type(None), type(...), type(NotImplemented)}
# Generators that all of Python and numpy share: every process seeds them anew.
_SHARED = set(map(id, (_np := np.random.mtrand._rand, _np._bit_generator, random._inst)))


def key(plan: Plan) -> dict[str, Any]:
    """What identifies an audit, as plain data."""
    prior, game, settings = plan.question.prior, plan.game, plan.settings
    tables = [prior.support, game.pi, plan.read, game.fiber_of, game.target_of, game.luck]
    return {
        "format": 6,
        "claim": plan.claim.describe(),
        "game": digest(tables),
        "threat": plan.question.describe(),
        "trials": settings.trials,
        "confidence": 1.0 - settings.alpha,
        "sequential": settings.sequential,
        "bits": settings.bits,
        "rng": settings.seed,
        "seen": _settled(lambda: _seen(plan)),
    }


def _seen(plan: Plan) -> dict[str, str]:
    told = {f"its {name}": named(value) for name, value in plan.told.items()}
    return {"the function under audit": named(plan.subject), **told}


def named(thing: Any) -> str:
    """A name for people, and a digest."""
    if isinstance(thing, BlackBox):
        thing = thing.run
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    return f"{name} {digest(thing)}"


def digest(thing: Any) -> str:
    """Sixteen hexadecimal digits that identify a thing."""
    return _settled(lambda: _digest(thing, files=True))


def digest_of_outputs(outputs: Any) -> str:
    """The same without the files of installed packages: those belong to the function (`key`), and
    outputs are looked at after every few calls.
    """
    return _settled(lambda: _digest(outputs, files=False))


def _digest(thing: Any, *, files: bool) -> str:
    walk = _Walk(files)
    walk.see(thing)
    return walk.hash.hexdigest()[:16]


def _settled(look: Callable[[], T]) -> T:
    """A look that loads no modules: those that a function will import are loaded by the first."""
    for _ in range(ROUNDS):
        before = len(sys.modules)
        seen = look()
        if len(sys.modules) <= before:
            break
    return seen


class _Walk:
    """One walk through an object and everything in it; repeated objects are numbered."""

    def __init__(self, files: bool) -> None:
        self.files = files  # of installed packages
        self.hash = hashlib.sha256()
        self.met: dict[int, int] = {}
        self.kept: list[Any] = []  # keeps objects alive, so that no address is reused
        self.packages: set[str] = set()

    def say(self, *words: Any) -> None:
        for word in words:
            text = (
                word if isinstance(word, bytes) else str(word).encode("utf-8", "backslashreplace")
            )
            self.hash.update(len(text).to_bytes(8, "little") + text)

    def see(self, thing: Any) -> None:
        if type(thing) in _PLAIN:
            self.say(type(thing).__name__, hex(thing) if type(thing) is int else repr(thing))
        elif type(thing) is float:
            self.say("float", thing.hex())
        elif id(thing) in _SHARED:
            self.say("shared", type(thing).__name__)
        elif id(thing) in self.met:
            self.say("met", self.met[id(thing)])
        else:
            self.met[id(thing)] = len(self.met)
            self.kept.append(thing)
            self._look(thing)

    def _look(self, thing: Any) -> None:
        for kind, seen in _KINDS:
            if isinstance(thing, kind):
                seen(self, thing)
                if not isinstance(thing, type) and type(thing) not in _USUAL:
                    self._more(thing)
                return
        self._object(thing)

    def _more(self, thing: Any) -> None:
        """For a subclass of a common type: its class, and its other contents."""
        self.see(type(thing))
        self.see(_held(thing))
        self.see(getattr(thing, "default_factory", None))

    def apart(self, things: Any) -> None:
        """Unordered contents: the digests of each."""
        digests = []
        for thing in list(things):
            walk = _Walk(self.files)
            walk.met, walk.kept = dict(self.met), self.kept
            walk.see(thing)
            digests.append(walk.hash.hexdigest())
        self.say(*sorted(digests))

    # -- kinds -----------------------------------------------------------------------------------
    def _sequence(self, thing: Any) -> None:
        self.say(type(thing).__name__, len(thing))
        for part in thing:
            self.see(part)

    def _set(self, thing: Any) -> None:
        self.say(type(thing).__name__, len(thing))
        self.apart(thing)

    def _mapping(self, thing: Any) -> None:
        self.say(type(thing).__name__, len(thing))
        for name, value in list(thing.items()):  # in this order, which may matter
            self.see(name)
            self.see(value)

    def _array(self, thing: Any) -> None:
        array = np.asarray(thing)
        self.say("array", array.dtype.descr, array.shape)
        if array.dtype.hasobject:
            self.see(array.tolist())
        else:
            self.say(np.ascontiguousarray(array).tobytes())

    def _module(self, thing: types.ModuleType) -> None:
        self.say("module", thing.__name__, of_module(thing.__name__))
        if installed(thing.__name__):
            return
        # the user's own: its current contents, and those of the modules it uses
        for name, value in sorted(vars(thing).items()):
            if name not in _MACHINERY:
                self.say(name)
                self.see(value)

    def _code(self, thing: types.CodeType) -> None:
        self.say("code", thing.co_name, thing.co_code, thing.co_names, thing.co_flags)
        self.say(thing.co_argcount, thing.co_kwonlyargcount, thing.co_varnames)
        self.say(thing.co_exceptiontable)
        for constant in thing.co_consts:
            self.see(constant)

    def _function(self, thing: types.FunctionType) -> None:
        self.say("function", thing.__qualname__)
        if thing.__code__.co_filename.startswith(INSTALLED):
            self.say(thing.__module__, hashed(thing.__code__.co_filename))
            if isinstance(thing.__module__, str) and not installed(thing.__module__):
                self.say(of_module(thing.__module__))
            self._packages(thing)
            self.see(thing.__code__)
        else:
            self._own(thing.__code__, thing.__globals__)
        self.see(thing.__defaults__)
        self.see(thing.__kwdefaults__)
        for cell in thing.__closure__ or ():
            try:
                self.see(cell.cell_contents)
            except ValueError:
                self.say("empty")
        self.see({k: v for k, v in vars(thing).items() if k != "__wrapped__"})
        self.see(getattr(thing, "__wrapped__", None))

    def _own(self, code: types.CodeType, space: dict[str, Any]) -> None:
        """Code, the globals that it names, what it imports: files, and one's own as they are."""
        self.see(code)
        for name in sorted(names(code) & space.keys()):
            self.say(name)
            self.see(space[name])
        package = package_of(space)
        for text in literals(code):
            self.say(text, found(text, package))
        for module, taken in imports(code):
            self.say(module, found(module, package))
            home = own_module(module, package)
            self.see(home)
            for name in taken if home is not None else ():
                inner = f"{module}{'' if module.endswith('.') else '.'}{name}"
                self.say(inner, found(inner, package))
                try:
                    self.see(getattr(home, name))
                except AttributeError:  # as Python does: then it is a submodule
                    self.see(own_module(inner, package))
                except Exception:  # the function itself will say what is wrong with it
                    self.say("none")

    def _packages(self, thing: Any) -> None:
        """The package of something installed, and the packages that it names."""
        for top in reached(thing) if self.files else ():
            self.say(top)
            if top not in self.packages:
                self.packages.add(top)
                self.say(of_module(top))

    def _generator(self, thing: types.GeneratorType[Any, Any, Any]) -> None:
        self.say("generator")
        self.see(thing.gi_code)
        frame = thing.gi_frame
        self.see(None if frame is None else [frame.f_lasti, dict(frame.f_locals)])
        if frame is not None and not thing.gi_code.co_filename.startswith(INSTALLED):
            self._own(thing.gi_code, frame.f_globals)
        # what a loop in it goes through is no local variable, but is referred to
        self.see([x for x in gc.get_referents(thing) if hasattr(type(x), "__next__")])

    def _method(self, thing: types.MethodType) -> None:
        self.say("method")
        self.see(thing.__func__)
        self.see(thing.__self__)

    def _builtin(self, thing: types.BuiltinFunctionType) -> None:
        self.say("builtin", thing.__qualname__)
        self.see(thing.__self__)

    def _partial(self, thing: functools.partial[Any]) -> None:
        self.say("partial")
        self.see((thing.func, thing.args, thing.keywords))

    def _class(self, thing: type) -> None:
        self.say("class", thing.__module__, thing.__qualname__)
        home = thing.__module__
        if isinstance(home, str) and installed(home) and name_of(thing) == thing.__name__:
            self._packages(thing)
            return  # it can be found by its name; what was made while running is looked at
        self.see(thing.__bases__)
        if type(thing) is not type:
            self.see(type(thing))
        for name, value in sorted(vars(thing).items()):
            if name not in _SILENT and not isinstance(value, types.MemberDescriptorType):
                self.say(name)
                self.see(value)

    def _object(self, thing: Any) -> None:
        """Anything else: its class and its contents."""
        self.see(type(thing))
        tensor = getattr(thing, "detach", None)
        home = type(thing).__module__
        if isinstance(home, str) and home.partition(".")[0] == "torch" and callable(tensor):
            try:
                self._array(tensor().cpu().numpy())
            except (TypeError, RuntimeError):  # a kind of number that numpy does not have
                self._reduced(thing)
            return
        held = _held(thing)
        for name in sorted(held):
            self.say(name)
            self.see(held[name])
        self._reduced(thing)  # what compiled types hold shows only there

    def _reduced(self, thing: Any) -> None:
        """What a compiled type holds, as it is pickled."""
        try:
            reduced = thing.__reduce_ex__(4)
        except Exception:  # a lock or a socket: nothing is visible
            return
        if isinstance(reduced, str):  # by its name
            self.say(type(thing).__module__, reduced)
        if isinstance(reduced, tuple):
            self.see([x for x in reduced[:3] if x is not None])
            for items in reduced[3:5]:  # the contents of such a list or dict
                self.see(None if items is None else list(items))

    def _rough(self, thing: Any) -> None:
        """By type and name only: changes of its contents are meaningless."""
        self.say(type(thing).__qualname__, getattr(thing, "name", ""))


_KINDS: tuple[tuple[Any, Any], ...] = (
    (list | tuple, _Walk._sequence),
    (set | frozenset, _Walk._set),
    (dict | types.MappingProxyType, _Walk._mapping),
    (np.ndarray | np.generic, _Walk._array),
    (types.ModuleType, _Walk._module),
    (types.CodeType, _Walk._code),
    (types.FunctionType, _Walk._function),
    (types.MethodType, _Walk._method),
    (types.BuiltinFunctionType, _Walk._builtin),
    (functools.partial, _Walk._partial),
    (type, _Walk._class),
    (logging.Logger, _Walk._rough),
    (pathlib.PurePath | np.dtype | range, lambda walk, x: walk.say(type(x).__name__, x)),
    (enum.Enum, lambda walk, x: (walk.see(type(x)), walk.say(x.name))),
    (re.Pattern, lambda walk, x: walk.say("pattern", x.pattern, x.flags)),
    (np.random.Generator, lambda walk, x: walk.see(x.bit_generator)),
    (np.random.BitGenerator, lambda walk, x: walk.see(x.state)),
    (random.SystemRandom, _Walk._rough),
    (type({}.keys()) | type({}.values()) | type({}.items()), lambda w, x: w.see(list(x))),
    (weakref.ref, lambda walk, x: walk.see(x())),
    (types.GeneratorType, _Walk._generator),
    (random.Random, lambda walk, x: walk.see(x.getstate())),
    (memoryview, lambda walk, x: walk.say("memory", x.tobytes())),
    (contextvars.ContextVar, lambda walk, x: (walk.say(x.name), walk.see(_current(x)))),
    (staticmethod | classmethod, lambda walk, x: walk.see(x.__func__)),
    (property, lambda walk, x: walk.see([x.fget, x.fset, x.fdel])),
    (functools.cached_property, lambda walk, x: walk.see(x.func)),
    (functools._lru_cache_wrapper, lambda walk, x: walk.see(x.__wrapped__)),
)


_USUAL = {
    list, tuple, set, frozenset, dict, types.MappingProxyType, np.ndarray, types.ModuleType,
    types.CodeType, types.FunctionType, types.MethodType, types.BuiltinFunctionType,
    functools.partial, logging.Logger, range, re.Pattern, np.random.Generator, random.Random,
    staticmethod, classmethod, property, functools.cached_property, functools._lru_cache_wrapper,
}  # fmt: skip


def _current(variable: contextvars.ContextVar[Any]) -> Any:
    """What a context variable holds, or its default."""
    try:
        return variable.get()
    except LookupError:
        return None


def _held(thing: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots too."""
    held = dict(getattr(thing, "__dict__", {}))
    for base in type(thing).__mro__:
        for name in _slots(base):
            if hasattr(thing, name):
                held[name] = getattr(thing, name)
    return held


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(s for s in slots if s not in _SILENT)
    hidden = f"_{kind.__name__.lstrip('_')}"  # how Python calls private names
    return tuple(f"{hidden}{n}" if n[:2] == "__" and n[-2:] != "__" else n for n in names)
