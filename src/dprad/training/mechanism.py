"""DP-SGD as a mechanism: one record among known ones goes in, a whole private training comes out.

Every step adds the clipped gradients of the records that take part and Gaussian noise of standard
deviation ``sigma clip``. The attacker sees everything but the one record: initial weights, known
records, every noisy sum. All they can learn is one number per candidate z, the log-likelihood

    l_z = sum_t  <u_t, g_zt> / s^2 - |g_zt|^2 / (2 s^2),      s = sigma clip,

where u_t is the noisy sum minus the known gradients and g_zt the clipped gradient of z at the
weights of step t. (The paper drops the norms and multiplies step-wise mixtures; this is exact.)
With Poisson sampling every step is a mixture, ``log(1 - q + q e^(...))``, for an attacker who also
sees which *known* records were drawn. These numbers are kept while the training runs, for many
trainings at once; the trajectories are not.

An output is a 2 x m table: the log-likelihoods, and the plain correlations ``sum_t <u_t, g_zt>``
that the paper's rule reads.
"""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.game.question import Question
from dprad.mechanisms.categorical import Categorical, categories
from dprad.model.guarantees import REPLACE_ONE, GaussianDP, Guarantee
from dprad.model.priors import Prior
from dprad.numerics.arrays import Column, FloatArray
from dprad.runtime.progress import Meter
from dprad.training.gradients import Engine, engine
from dprad.training.guarantee import LEAST, MOST, dpsgd
from dprad.training.records import checked

if TYPE_CHECKING:
    import torch

# Bytes of a chunk of trainings on the CPU, where small chunks stay in the cache; its share of the
# free memory on a GPU; and the most trainings in a chunk.
CPU_BYTES, GPU_SHARE, MOST_RUNS = 2**24, 0.5, 2**14
# Durations beyond this many seconds on the CPU are announced.
LONG = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DPSGD(Categorical):
    """Private training, seen by an attacker who knows all records but one.

    Parameters
    ----------
    model
        A `torch.nn.Module`. Plain perceptrons (`nn.Sequential` of `nn.Linear` and activations) run
        many times faster than others.
    known
        Pair (records, labels): the rest of the data.
    candidates
        Pair (records, labels): who the last record may be. A prior has the numbers 0, 1, ... of the
        candidates in a column `candidate`, or as its only column.
    clip
        Clipping norm.
    sigma
        Standard deviation of the noise divided by the clipping norm.
    steps
        Number of steps of plain SGD.
    learning_rate
        Learning rate. The sum is divided by the expected number of records.
    sample_rate
        1 for full batches, else the probability that a record is drawn for a step (Poisson).
    loss
        ``loss(outputs, labels)``, one number per record; default: cross-entropy.
    fresh
        Whether every training starts with new random weights (which the attacker sees), or with the
        model's own.
    device
        Default: the GPU if there is one.
    chunk
        Trainings run at once; default: what the device can hold. The same seed, chunk and device
        give the same numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> x, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> training = DPSGD(model=nn.Linear(4, 2), known=(x[:2], y[:2]), candidates=(x[2:], y[2:]),
    ...                  clip=1.0, sigma=2.0, steps=3, learning_rate=0.1)
    >>> training.size, round(training.guarantee.mu, 6)     # sqrt(3)/2
    (2, 0.866025)

    """

    model: Any
    known: tuple[Any, Any]
    candidates: tuple[Any, Any]
    costly: ClassVar[bool] = True

    clip: float
    sigma: float
    steps: int
    learning_rate: float
    sample_rate: float = 1.0
    loss: Any = None
    fresh: bool = True
    device: str | None = None
    chunk: int | None = None
    engine: Engine = field(init=False, repr=False)
    labels: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            import torch
        except ImportError:
            raise DpradError("DPSGD needs PyTorch: pip install 'dprad[torch]'.") from None
        put = object.__setattr__
        put(self, "clip", _positive(self.clip, "clip", "It is the clipping norm."))
        put(self, "sigma", _positive(self.sigma, "sigma", "Without noise the record is revealed."))
        if not LEAST <= self.sigma <= MOST:
            raise DpradError(
                f"sigma must be between {LEAST:g} and {MOST:g}, but is {self.sigma!r}, which is no "
                "noise, or only noise."
            )
        put(self, "steps", whole(self.steps, "steps", low=1))
        put(self, "learning_rate", number(self.learning_rate, "learning_rate"))
        put(self, "sample_rate", number(self.sample_rate, "sample_rate", low=0, high=1))
        if self.chunk is not None:
            put(self, "chunk", whole(self.chunk, "chunk", low=1))
        device = torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        records, labels, known = checked(
            self.model, self.known, self.candidates, self.loss, device, None
        )
        put(self, "labels", labels[known:].cpu().numpy())
        put(self, "device", str(device))
        made = engine(self.model, records, labels, known, self.loss, self.clip)
        put(self, "engine", made)

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of candidates."""
        return len(self.labels)

    def read(self, question: Question) -> Column:
        """The numbers 0, 1, ... of the candidates, from the column of that name.

        Parameters
        ----------
        question
            A prepared prior, threat and query.

        Returns
        -------
        ndarray
            One number per record.

        """
        if callable(question.query):
            return question.codes(self.size, "DPSGD")
        return question.numbers("candidate", self.size, "DPSGD")

    @property
    def guarantee(self) -> Guarantee:
        """Add-remove: the absent person's gradient is zero. For replaced records:
        ``replace_one()``.
        """
        return dpsgd(noise_multiplier=self.sigma, sample_rate=self.sample_rate, steps=self.steps)

    @property
    def paper_guarantee(self) -> Guarantee:
        """The curve that the paper uses for *replaced* records. It is too strong to be a promise.

        A replaced gradient moves by up to twice the clipping norm. Kept to redraw the paper's
        curves.
        """
        if self.sample_rate < 1:
            raise DpradError("the paper's curve is for full batches, but sample_rate is below 1.")
        return GaussianDP(math.sqrt(self.steps) / self.sigma, neighbours=REPLACE_ONE)

    @property
    def assumes(self) -> str:
        """What the attacker sees."""
        drawn = "" if self.sample_rate == 1 else ", which of those were drawn in each step"
        return (
            f"The attacker sees the initial weights, all other records{drawn} and every noisy "
            "gradient."
        )

    def prior(self) -> Prior:
        """All candidates equally likely, as a table with the columns candidate and label.

        Returns
        -------
        Prior
            A finite prior.

        Examples
        --------
        ::

            risks = dprad.training_risks(training, prior=training.prior())

        """
        labels = self.labels.tolist()
        return Prior.from_counts(
            dict.fromkeys(enumerate(labels), 1.0), columns=["candidate", "label"]
        )

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One training per candidate code; see the module for the form of an output.

        O(steps) gradients of all records per training; memory for one chunk of trainings.

        Parameters
        ----------
        records
            Codes of candidates.
        rng
            A numpy `Generator`.

        Returns
        -------
        ndarray
            One 2 x m table per training.

        """
        import torch

        codes = categories(records, self.size, "DPSGD").reshape(-1)
        outputs = np.empty((len(codes), 2, self.size))
        size, begin = self.chunk or self._chunk(), time.monotonic()
        meter = Meter(sys.stderr.isatty(), len(codes), begin, what="trainings")
        for a in range(0, len(codes), size):
            generator = torch.Generator(device=self.device)
            generator.manual_seed(int(rng.integers(2**63)))
            some = torch.as_tensor(codes[a : a + size]).to(self.device)
            with torch.no_grad():
                outputs[a : a + size] = self._train(some, generator).cpu().numpy()
            if a == 0 and self.device == "cpu":
                self._tell(time.monotonic() - begin, len(some), len(codes))
            meter.show(min(a + size, len(codes)))
        meter.close()
        if not np.all(np.isfinite(outputs)):
            raise DpradError(
                "the training diverged: gradients are not finite. Lower learning_rate, or check "
                "the data."
            )
        return outputs

    def _train(self, codes: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        import torch

        runs, scale, q = len(codes), self.sigma, self.sample_rate  # in units of the clipping norm
        weights = self.engine.start(runs, generator, fresh=self.fresh)
        known = len(self.known[1])
        rate = self.learning_rate * self.clip / (q * (known + 1)) if q > 0 else 0.0
        options: Any = {"dtype": weights[0].dtype, "device": weights[0].device}
        output = torch.zeros(runs, 2, self.size, dtype=torch.float64, device=weights[0].device)
        drawn = present = None
        for _ in range(self.steps):
            if q < 1:
                # in double precision, since q may be small
                fine: Any = {"generator": generator, "dtype": torch.float64}
                fine["device"] = options["device"]
                drawn = (torch.rand(runs, known, **fine) < q).to(**options)
                present = (torch.rand(runs, **fine) < q).to(**options)
            step = self.engine.step(weights, drawn)
            seen = step.chosen(codes)
            if present is not None:
                seen = [g * present.reshape(-1, *[1] * (g.dim() - 1)) for g in seen]
            for g in seen:
                noise = torch.randn(g.shape, generator=generator, **options)
                g.add_(noise, alpha=scale)
            product = step.products(seen).double()
            score = (product - step.squares.double() / 2) / scale**2
            if q < 1:
                score = torch.logaddexp(
                    torch.full_like(score, math.log1p(-q)),
                    score + (math.log(q) if q > 0 else -math.inf),
                )
            output[:, 0] += score
            output[:, 1] += product * self.clip**2
            for w, t, g in zip(weights, step.total, seen, strict=True):
                w.sub_(t.add_(g), alpha=rate)
        return output

    def _chunk(self) -> int:
        """The number of trainings that fit at once."""
        import torch

        each = self.engine.bytes_a_run()
        free = CPU_BYTES
        if str(self.device).startswith("cuda"):
            free = int(GPU_SHARE * torch.cuda.mem_get_info()[0])
        return int(min(max(1, free // each), MOST_RUNS))

    def _tell(self, seconds: float, done: int, total: int) -> None:
        """Announce a long duration."""
        left = seconds * (total - done) / done
        if left > LONG:
            with suppress(OSError):  # nobody listens
                sys.stderr.write(
                    f"No GPU: {total:,} trainings take about {left:,.0f} s on the processor.\n"
                )

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density of outputs given candidates, up to a common constant; broadcasts.

        Parameters
        ----------
        outputs
            Outputs of `sample`.
        records
            Codes of candidates.

        Returns
        -------
        ndarray
            Logarithms.

        """
        scores = np.asarray(outputs)[..., 0, :]
        codes = np.asarray(records)
        shape = np.broadcast_shapes(scores.shape[:-1], codes.shape)
        wide = np.broadcast_to(scores, (*shape, self.size))
        at = np.broadcast_to(codes, shape)[..., None]
        return np.take_along_axis(wide, at, axis=-1)[..., 0]

    def __repr__(self) -> str:
        numbers = {k: v for k, v in self.describe().items() if k != "kind"}
        return f"DPSGD({', '.join(f'{k}={v}' for k, v in numbers.items())})"

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {
            "kind": "DPSGD",
            "sigma": self.sigma,
            "clip": self.clip,
            "steps": self.steps,
            "learning_rate": self.learning_rate,
            "sample_rate": self.sample_rate,
            "known": len(self.known[1]),
            "candidates": self.size,
        }


def _positive(value: Any, name: str, hint: str) -> float:
    result = number(value, name, low=0, hint=hint)
    if result == 0:
        raise DpradError(f"{name} must be positive, but is {value!r}. {hint}")
    return result
