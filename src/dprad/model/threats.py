"""Threat: what the attacker knows, what they want to learn, and when a guess counts.

The attacker may pass, which never succeeds, unless they must guess. A guess g succeeds on z when
``loss(target of z, g) <= eta``. Guesses range over the domain of the target columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.data.tables import codes
from dprad.errors import DpradError, column, number, one_of, told
from dprad.model.losses import LOSSES, Loss
from dprad.model.predicates import holds
from dprad.model.priors import Prior
from dprad.numerics.arrays import BoolArray, Column, IntArray

KNOWS = ("nothing", "everything")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Threat:
    """What an attacker knows and tries to learn.

    Parameters
    ----------
    knows
        ``"nothing"``; ``"everything"`` (membership inference); a list of columns; or a callable
        that takes the support of the prior and returns one hashable label per record.
    target
        The columns the attacker guesses; default: the whole record.
    loss
        ``"exact"`` (0 if equal, else 1), ``"absolute"`` (one numeric column), ``"relative"`` (the
        same, as a share of the true value), ``"haversine"`` (metres; two columns, latitude and
        longitude in degrees), a callable ``loss(targets, guesses)`` that returns a ``len(targets) x
        len(guesses)`` matrix, or a boolean success matrix, dense or sparse, over the distinct
        target values in order.
    eta
        A guess counts if its loss is at most this.
    must_guess
        Whether the attacker must always name a value of the domain, as the paper's must. A guess
        that is right about nobody who is possible, given what is known, serves as a pass; so this
        matters only where there is none, and never where nothing is known and guesses are exact.
    group
        Whose risk: a predicate such as ``'age >= 80'``, or a callable that takes the support of the
        prior and returns True for the members. Targets are then drawn from the group; who takes
        the place of one who is absent, from everybody. Default: the average over all people.

    Examples
    --------
    >>> Threat(knows=["age"], target=["diagnosis"]).target
    ('diagnosis',)

    """

    knows: str | Sequence[str] | Callable[[Column], Sequence[Any]] = "nothing"
    target: Sequence[str] | None = None
    loss: str | Callable[[Column, Column], Any] | Any = "exact"
    eta: float = 0.0
    must_guess: bool = False
    group: str | Callable[[Column], Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        if isinstance(self.knows, str):
            hint = f"A column is given as a list: knows=[{self.knows!r}]."
            put("knows", one_of(self.knows, "knows", KNOWS, hint=hint))
        elif not callable(self.knows):
            put("knows", _names(self.knows, "knows"))
        if self.target is not None:
            put("target", _names(self.target, "target"))
        if isinstance(self.loss, str):
            put("loss", one_of(self.loss, "loss", LOSSES))
        put("eta", number(self.eta, "eta", low=0, hint="It is the largest loss that counts."))
        if not isinstance(self.must_guess, bool):
            raise DpradError(f"must_guess must be True or False, but is {self.must_guess!r}.")
        if self.group is not None and not isinstance(self.group, str) and not callable(self.group):
            raise DpradError(f"group must be a predicate or a callable, but is {self.group!r}.")
        if self.group is not None and self.must_guess:
            raise DpradError("must_guess is not available for a group: leave out one of them.")
        if isinstance(self.loss, str):
            self._check_eta(LOSSES[self.loss])
        if not isinstance(self.loss, str) and not callable(self.loss):
            put("loss", _success_matrix(self.loss))
            if self.eta != 0:
                raise DpradError(
                    f"eta must be left out with a success matrix, but is {self.eta!r}. For a "
                    "matrix of losses, pass loss=(losses <= eta)."
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Threat):
            return NotImplemented
        mine, theirs = ((t.knows, t.target, t.eta, t.must_guess, t.group) for t in (self, other))
        return mine == theirs and _same_loss(self.loss, other.loss)

    def __hash__(self) -> int:
        loss: Any = self.loss
        plain = isinstance(loss, str) or callable(loss)
        rest = self.must_guess, self.group, loss if plain else loss.nnz
        return hash((self.knows, self.target, self.eta, *rest))

    def _check_eta(self, loss: Loss) -> None:
        if loss.most == 0 and self.eta > 0:
            raise DpradError(
                f"eta must be 0 with loss={loss.name!r}, but is {self.eta!r}. For a tolerance "
                "choose another loss, such as loss='absolute'."
            )
        if loss.most > 0 and not self.eta < loss.most:
            raise DpradError(
                f"eta must be below {loss.most:g} with loss={loss.name!r}, but is {self.eta!r}."
            )

    def fibers(self, prior: Prior) -> IntArray:
        """What the attacker knows about each record, as a code.

        Parameters
        ----------
        prior
            A finite prior.

        Returns
        -------
        ndarray
            One code per record; records that look the same share a code.

        Examples
        --------
        >>> from dprad import Prior
        >>> records = {("old", "ill"): 1, ("young", "well"): 3}
        >>> prior = Prior.from_counts(records, columns=["age", "health"])
        >>> Threat(knows=["age"]).fibers(prior).tolist()
        [0, 1]

        """
        from dprad.data.tables import joint_codes

        size = prior.size
        assert size is not None, "only a finite prior has fibers"
        if self.knows == "nothing":
            return np.zeros(size, dtype=np.intp)
        if self.knows == "everything":
            return np.arange(size)
        if not callable(self.knows):
            known = [column(c, prior.columns, name="knows") for c in self.knows]
            return joint_codes([prior.column(c) for c in known])[0]
        try:
            labels = list(self.knows(prior.support))  # type: ignore[arg-type]
        except Exception as error:
            raise DpradError(
                f"knows must return one label per record, but raised {told(error)}."
            ) from None
        if len(labels) != size:
            raise DpradError(
                f"knows must return one label per record, but returned {len(labels)} for {size} "
                "records."
            )
        try:
            seen = {label: i for i, label in enumerate(dict.fromkeys(labels))}
        except TypeError:
            raise DpradError(
                "knows must return hashable labels, but one is not hashable."
            ) from None
        return np.fromiter((seen[v] for v in labels), dtype=np.intp, count=size)

    def inside(self, prior: Prior) -> BoolArray | None:
        """Who belongs to the group.

        Parameters
        ----------
        prior
            A finite prior.

        Returns
        -------
        ndarray or None
            One True or False per record; None without a group.

        Examples
        --------
        >>> from dprad import Prior
        >>> prior = Prior.from_counts({"ill": 1, "well": 3})
        >>> Threat(group=lambda records: records == "ill").inside(prior).tolist()
        [True, False]

        """
        if self.group is None:
            return None
        if isinstance(self.group, str):
            members = holds(self.group, prior)
        else:
            try:
                members = np.asarray(self.group(prior.support))  # type: ignore[arg-type]
            except Exception as error:
                raise DpradError(
                    f"group must return True or False for each record, but raised {told(error)}."
                ) from None
        if members.dtype.kind != "b" or members.shape != (prior.size,):
            raise DpradError(
                f"group must return True or False for each of the {prior.size} records, but "
                f"returned an array of {members.dtype} of shape {members.shape}."
            )
        if not np.any(members & (prior.table > 0)):
            raise DpradError("nobody is in the group.")
        return members

    def asks_membership(self, columns: Sequence[str]) -> bool:
        """Whether everything guessed is known, so that only membership is in question.

        Parameters
        ----------
        columns
            The columns of a record.

        Returns
        -------
        bool
            True for membership inference.

        Examples
        --------
        >>> Threat(knows=["age"], target=["age"]).asks_membership(["age", "health"])
        True

        """
        if isinstance(self.knows, str) or callable(self.knows):
            return self.knows == "everything"
        return set(columns if self.target is None else self.target) <= set(self.knows)

    def known(self, prior: Prior) -> Column | None:
        """What the attacker knows about each record, as values.

        Parameters
        ----------
        prior
            A finite prior.

        Returns
        -------
        ndarray or None
            One value per record; None if nothing is known.

        Examples
        --------
        >>> from dprad import Prior
        >>> records = {("old", "ill"): 1, ("young", "well"): 3}
        >>> prior = Prior.from_counts(records, columns=["age", "health"])
        >>> Threat(knows=["age"]).known(prior).tolist()
        ['old', 'young']

        """
        if isinstance(self.knows, str) and self.knows == "nothing":
            return None
        assert prior.support is not None
        if isinstance(self.knows, str):
            return prior.support
        if callable(self.knows):
            from dprad.data.tables import array

            return array(list(self.knows(prior.support)))
        if len(self.knows) == 1:
            return prior.column(self.knows[0])
        return prior.support[list(self.knows)]

    def target_columns(self, prior: Prior) -> tuple[str, ...]:
        """The columns that are guessed.

        Parameters
        ----------
        prior
            The population.

        Returns
        -------
        tuple of str
            Names of columns.

        Examples
        --------
        >>> from dprad import Prior
        >>> records = {("old", "ill"): 1, ("young", "well"): 3}
        >>> prior = Prior.from_counts(records, columns=["age", "health"])
        >>> Threat().target_columns(prior)
        ('age', 'health')

        """
        if self.target is None:
            return prior.columns
        return tuple(column(c, prior.columns, name="target") for c in self.target)

    def describe(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """The threat as plain data, for output.

        Parameters
        ----------
        columns
            The columns of a record, if known.

        Returns
        -------
        dict
            With keys knows, target, loss, eta, must_guess, group and membership.

        Examples
        --------
        >>> Threat(knows="everything").describe()["membership"]
        True

        """
        loss, guessed = self.loss, columns if self.target is None else self.target
        whole = self.knows == "everything"
        return {
            "knows": "function" if callable(self.knows) else _plain(self.knows),
            "target": "record" if self.target is None else _plain(self.target),
            "loss": loss if isinstance(loss, str) else "function" if callable(loss) else "matrix",
            "eta": self.eta,
            "must_guess": self.must_guess,
            "group": "function" if callable(self.group) else self.group,
            "membership": whole if guessed is None else self.asks_membership(guessed),
        }


def target_values(prior: Prior, columns: Sequence[str]) -> tuple[IntArray, Column]:
    """The target code of each record, and the distinct targets in order (the possible guesses)."""
    if len(columns) == 1:
        return codes(prior.column(columns[0]))
    from dprad.data.tables import joint_codes

    code, size = joint_codes([prior.column(c) for c in columns])
    first = np.empty(size, dtype=np.intp)
    first[code[::-1]] = np.arange(len(code))[::-1]
    assert prior.support is not None
    return code, prior.support[list(columns)][first]


def _same_loss(a: Any, b: Any) -> bool:
    """Whether two losses are equal words or functions, or matrices with the same entries."""
    if any(isinstance(x, str) or callable(x) for x in (a, b)):
        return type(a) is type(b) and bool(a == b)
    return bool(a.shape == b.shape and (a != b).nnz == 0)


def _names(value: Any, name: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    try:
        names = tuple(value)
    except TypeError:
        names = ()
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise DpradError(f"{name} must be a list of different column names, but is {value!r}.")
    return names


def _success_matrix(matrix: Any) -> Any:
    """A square boolean matrix, kept sparse; True where the guess counts."""
    from scipy import sparse

    try:
        given = sparse.csr_array(matrix) if sparse.issparse(matrix) else np.asarray(matrix)
    except ValueError:
        raise DpradError("loss as a matrix must have rows of equal length.") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise DpradError(
            "loss as a matrix must be square, one row and one column per target value, but has "
            f"shape {given.shape}."
        )
    values = given.data if sparse.issparse(given) else given
    if not np.all((values == 0) | (values == 1)):
        raise DpradError(
            "loss as a matrix must say where a guess counts (True or False), but has other values. "
            "For a matrix of losses, pass loss=(losses <= eta)."
        )
    if not given.diagonal().any():
        raise DpradError(
            "loss as a matrix must be True where a guess counts, but no target counts as a guess "
            "of itself. For a matrix of losses, pass loss=(losses <= eta)."
        )
    return sparse.csr_array(given.astype(bool))


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else list(value)
