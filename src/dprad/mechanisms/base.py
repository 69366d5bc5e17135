"""The abstract base class of all mechanisms, and what each subclass declares.

A mechanism is seen by an attacker who knows all other records: one record goes in, one output
comes out. Categorical mechanisms read codes 0 .. size-1 in the order of the prior's support.

A new mechanism is one file: a frozen, keyword-only dataclass that derives from `Categorical`,
`Additive`, `Ranged` or `Mechanism`, with a `Card` if it has a short name. If it derives from a
family with a solver (`SupportMechanism`, `Finite`, `WholeNoise`, `CutLaplace`), its risk is exact
without further code.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.data.tables import array
from dprad.errors import DpradError
from dprad.game.question import Question
from dprad.mechanisms.card import Card as Card
from dprad.model.guarantees import Guarantee
from dprad.model.parameters import EPSILON, Goal, Parameter
from dprad.numerics.arrays import Column, FloatArray


class Mechanism(ABC):
    """Base class: samples outputs, gives their log-likelihoods, and has a guarantee.

    Examples
    --------
    >>> from dprad.mechanisms import GRR
    >>> issubclass(GRR, Mechanism)
    True

    """

    __slots__ = ()
    card: ClassVar[Card | None] = None
    # the parameter that sets the noise, and its largest supported value
    noise: ClassVar[Parameter | None] = None
    highest: ClassVar[float] = math.inf
    # whether it has a likelihood (black boxes have none); whether a draw takes long
    likelihood: ClassVar[bool] = True
    costly: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """The first argument on a card sets the noise."""
        if cls.card is not None and "noise" not in vars(cls):
            cls.noise = cls.card.takes[0]

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee | None:
        """The promise, for replaced records; None if it is not known."""

    @abstractmethod
    def sample(self, records: Any, rng: np.random.Generator) -> Any:
        """Draw one output per record.

        Parameters
        ----------
        records
            What the mechanism reads: category codes or numbers.
        rng
            A numpy `Generator`.

        Returns
        -------
        ndarray
            One output per record.

        Examples
        --------
        >>> import numpy as np
        >>> from dprad.mechanisms import GRR
        >>> GRR(epsilon=50.0, size=3).sample([0, 2], np.random.default_rng(0)).tolist()
        [0, 2]

        """

    def read(self, question: Question) -> Column:
        """What the mechanism reads from each record of a finite prior, as `sample` takes it.

        Category codes if `reads_codes` says how many there are, else the values themselves.

        Parameters
        ----------
        question
            A prepared prior, threat and query.

        Returns
        -------
        ndarray
            One value per record.

        Examples
        --------
        >>> from dprad import Prior
        >>> from dprad.game.question import Question
        >>> from dprad.mechanisms import GRR
        >>> GRR(epsilon=1.0, size=3).read(Question.of(Prior.uniform(3), None, None)).tolist()
        [0, 1, 2]

        """
        if self.reads_codes is None:
            return array(question.values())
        return question.codes(self.reads_codes, type(self).__name__)

    def prepared(self, question: Question) -> Mechanism:  # noqa: ARG002
        """The mechanism for the records of a question: itself, unless it describes a release whose
        outputs depend on which records there are.
        """
        return self

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:  # noqa: ARG002
        """Log-probability (or log-density) of outputs[i] given records[i]; broadcasts.

        Parameters
        ----------
        outputs
            Outputs, as `sample` returns them.
        records
            Records, as `sample` takes them.

        Returns
        -------
        ndarray
            Logarithms; minus infinity where impossible.

        Examples
        --------
        >>> import math
        >>> from dprad.mechanisms import GRR
        >>> round(float(GRR(epsilon=math.log(3), size=2).log_likelihood(0, 0)), 6)     # ln 0.75
        -0.287682

        """
        raise DpradError(f"{type(self).__name__} has no likelihood.")

    def describe(self) -> dict[str, Any]:
        """The kind and the arguments as plain data, for output.

        Returns
        -------
        dict
            Strings, numbers and lists.

        Examples
        --------
        >>> from dprad.mechanisms import GRR
        >>> GRR(epsilon=1.0, size=3).describe()["kind"]
        'GRR'

        """
        if not is_dataclass(self):
            raise DpradError(
                f"{type(self).__name__} must be a dataclass (@dataclass above the class), or have "
                "its own describe()."
            )
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
        return {"kind": type(self).__name__, **plain}

    @property
    def reads_codes(self) -> int | None:
        """How many category codes it reads; None if it reads something else."""
        return None

    # -- optional ------------------------------------------------------------------------------
    @property
    def width(self) -> int:
        """Numbers in an output, where they are so many that draws need room for them."""
        return 1

    @property
    def assumes(self) -> str | None:
        """What must hold for the likelihood to be right, if anything."""
        return None

    def error(self, confidence: float = 0.95) -> float | None:  # noqa: ARG002
        """How far the output is from the record, with the given probability.

        Parameters
        ----------
        confidence
            A probability.

        Returns
        -------
        float or None
            None if the output is not a number.

        Examples
        --------
        >>> from dprad.mechanisms import Laplace
        >>> round(Laplace(epsilon=1.0).error(0.95), 4)     # ln 20
        2.9957

        """
        return None

    def variance(self, people: int = 1) -> float | None:  # noqa: ARG002
        """Variance of the frequency or mean estimated from several reports.

        Parameters
        ----------
        people
            Number of reports.

        Returns
        -------
        float or None
            None if nothing is estimated.

        Examples
        --------
        >>> from dprad.mechanisms import Laplace
        >>> Laplace(epsilon=1.0).variance(100)
        0.02

        """
        return None

    def edges(self) -> Sequence[float]:
        """Values of `noise` at which the risk may jump; between them it rises throughout, or falls.

        Returns
        -------
        sequence of float
            Empty if the risk is monotone.

        Examples
        --------
        >>> from dprad.mechanisms import HadamardResponse
        >>> len(HadamardResponse(epsilon=1.0, size=8).edges()) > 0
        True

        """
        return ()

    @classmethod
    def first_guess(cls, goal: Goal) -> float | None:  # noqa: ARG003
        """A value of `noise` at which a search starts.

        Parameters
        ----------
        goal
            What the search aims for.

        Returns
        -------
        float or None
            None: start anywhere.

        Examples
        --------
        >>> from dprad.mechanisms import OUE
        >>> from dprad.model.parameters import Goal
        >>> OUE.first_guess(Goal(risk=0.1, share=0.2, values=2, fixed={}))
        1.0

        """
        return 1.0 if cls.noise is EPSILON else None

    @classmethod
    def turns(cls, fixed: Mapping[str, Any]) -> str | None:  # noqa: ARG003
        """The parameter that a calibration varies, where several could be; None: name it."""
        return None

    @classmethod
    def arguments(cls, values: Column | range, given: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG003
        """Arguments that follow from the values read, added to those given; here none do.

        Parameters
        ----------
        values
            The distinct values that are read, in order.
        given
            Arguments given by the user.

        Returns
        -------
        dict
            All arguments.

        Examples
        --------
        >>> import numpy as np
        >>> from dprad.mechanisms import GRR
        >>> GRR.arguments(np.array(["no", "yes"]), {"epsilon": 1.0})
        {'epsilon': 1.0, 'size': 2}

        """
        return given

    def spread(self, count: int) -> list[Any]:  # noqa: ARG002
        """Values that the mechanism can read, evenly spaced if they are numbers.

        Parameters
        ----------
        count
            How many, for numbers.

        Returns
        -------
        list
            Codes or numbers.

        Examples
        --------
        >>> from dprad.mechanisms import Laplace
        >>> Laplace(epsilon=1.0).spread(3)
        [0.0, 0.5, 1.0]

        """
        if self.reads_codes is not None:
            return list(range(self.reads_codes))
        raise DpradError(
            f"worst_prior cannot tell which numbers a {type(self).__name__} reads. Give values=."
        )

    def understood(self, outputs: Any, support: Column) -> Any:  # noqa: ARG002
        """Outputs of another implementation, in the form of this mechanism.

        Parameters
        ----------
        outputs
            What the other implementation returned.
        support
            The values of the prior, in order.

        Returns
        -------
        ndarray
            Outputs as `sample` returns them.

        Examples
        --------
        >>> import numpy as np
        >>> from dprad.mechanisms import GRR
        >>> GRR(epsilon=1.0, size=2).understood(["yes", "no"], np.array(["no", "yes"])).tolist()
        [1, 0]

        """
        return outputs

    def checked(self, outputs: Any) -> Any:
        """Outputs as an attack takes them.

        Parameters
        ----------
        outputs
            A list or array of outputs.

        Returns
        -------
        ndarray
            One entry per output.

        Examples
        --------
        >>> from dprad.mechanisms import Laplace
        >>> Laplace(epsilon=1.0).checked([0.5, 2]).tolist()
        [0.5, 2.0]

        """
        try:
            values = np.asarray(outputs)
            if values.ndim == 0 or values.dtype.kind not in "iufb":
                raise ValueError
        except ValueError:
            raise DpradError(
                f"outputs must be a list of what the mechanism returns, but is {outputs!r}."
            ) from None
        return values


def quotient(above: float, below: float) -> float:
    """A variance: infinite if nothing can be estimated or it exceeds the range of floats."""
    with np.errstate(all="ignore"):
        value = np.float64(above) / np.float64(below)
    return float("inf") if np.isnan(value) else float(value)
