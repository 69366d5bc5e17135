"""DP-SGD as a mechanism: one record among known ones goes in, a whole private training comes out.

Every step adds the clipped gradients of the records that take part and Gaussian noise of standard
deviation ``sigma clip``. The attacker sees all of it but the one record: initial weights, known
records, every noisy sum. What he can learn is then in one number a candidate z, the log-likelihood

    l_z = sum_t  <u_t, g_zt> / s^2 - |g_zt|^2 / (2 s^2),      s = sigma clip,

where u_t is the noisy sum less the known gradients and g_zt the clipped gradient of z at the
weights of step t. (The paper drops the norms and multiplies step-wise mixtures; this is exact.)
With Poisson sampling every step is a mixture, ``log(1 - q + q e^(...))``, for an attacker who also
sees which *known* records were drawn. These numbers are kept while the training runs, for many
trainings at once; the trajectories are not.

An output is a 2 x m table: the log-likelihoods, and the plain correlations ``sum_t <u_t, g_zt>``
that the paper's rule reads.
"""

from __future__ import annotations

import copy
import math
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.game.question import Question
from dprad.mechanisms.base import Categorical, categories
from dprad.model.guarantees import REPLACE_ONE, GaussianDP, Guarantee
from dprad.model.priors import Prior
from dprad.numerics.arrays import Column, FloatArray
from dprad.runtime.progress import Meter
from dprad.training.gradients import Engine, engine
from dprad.training.guarantee import LEAST, MOST, dpsgd

if TYPE_CHECKING:
    import torch

# Bytes that a chunk of trainings may take on the CPU, where small chunks stay in the cache; share
# of the free memory that it may take on a GPU, and the most trainings in one.
CPU_BYTES, GPU_SHARE, MOST_RUNS = 2**24, 0.5, 2**14
# Seconds from which on it is said how long the CPU will take.
LONG = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DPSGD(Categorical):
    """Private training, seen by an attacker who knows all records but one.

    Attributes
    ----------
    model
        A `torch.nn.Module`. Plain perceptrons (`nn.Sequential` of `nn.Linear` and activations) run
        many times faster than others.
    known, candidates
        Pairs (records, labels): the rest of the data, and whom the last record may be. A prior has
        the numbers 0, 1, ... of the candidates in a column `candidate`, or as its only column.
    clip, sigma
        Clipping norm, and noise over it.
    steps, learning_rate
        Steps of plain SGD. The sum is divided by the number of records that are expected.
    sample_rate
        1 for full batches, else the chance of every record to be drawn for a step (Poisson).
    loss
        ``loss(outputs, labels)``, one number a record; default: cross-entropy.
    fresh
        Whether every training begins with new random weights (which the attacker sees), or with the
        model's own.
    device
        Default: the GPU if there is one.
    chunk
        Trainings that are run at once; default: what the device can hold. The same seed, chunk and
        device give the same numbers.

    """

    model: Any
    known: tuple[Any, Any]
    candidates: tuple[Any, Any]
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
        put(self, "sigma", _positive(self.sigma, "sigma", "Without noise the record is laid open."))
        if not LEAST <= self.sigma <= MOST:
            raise DpradError(
                f"sigma must be between {LEAST:g} and {MOST:g}, but is {self.sigma!r}: that is no "
                "noise, or nothing but noise."
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
        """The numbers 0, 1, ... of the candidates, in a column of that name."""
        if callable(question.query):
            return question.codes(self.size, "DPSGD")
        return question.numbers("candidate", self.size, "DPSGD")

    @property
    def guarantee(self) -> Guarantee:
        """Add-remove: the absent person's gradient is zero. Replaced records: ``replace_one()``."""
        return dpsgd(noise_multiplier=self.sigma, sample_rate=self.sample_rate, steps=self.steps)

    @property
    def paper_guarantee(self) -> Guarantee:
        """What the paper takes for a promise about *replaced* records. It is none: too strong.

        A replaced gradient moves by up to twice the clipping norm. Here to redraw its curves.
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
        """All candidates equally likely, as a table with the columns candidate and label."""
        labels = self.labels.tolist()
        return Prior.from_counts(
            dict.fromkeys(enumerate(labels), 1), columns=["candidate", "label"]
        )

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """A training for each candidate code; see the module for what an output is.

        O(steps) gradients of all records a training; memory a chunk of trainings.
        """
        import torch

        codes = categories(records, self.size, "DPSGD").reshape(-1)
        found = np.empty((len(codes), 2, self.size))
        size, begin = self.chunk or self._chunk(), time.monotonic()
        meter = Meter(sys.stderr.isatty(), len(codes), begin, what="trainings")
        for a in range(0, len(codes), size):
            generator = torch.Generator(device=self.device)
            generator.manual_seed(int(rng.integers(2**63)))
            some = torch.as_tensor(codes[a : a + size]).to(self.device)
            with torch.no_grad():
                found[a : a + size] = self._train(some, generator).cpu().numpy()
            if a == 0 and self.device == "cpu":
                self._tell(time.monotonic() - begin, len(some), len(codes))
            meter.show(min(a + size, len(codes)))
        meter.close()
        if not np.all(np.isfinite(found)):
            raise DpradError(
                "the training diverged: gradients are not finite. Lower learning_rate, or look at "
                "the data."
            )
        return found

    def _train(self, codes: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        import torch

        runs, scale, q = len(codes), self.sigma, self.sample_rate  # in units of the clipping norm
        weights = self.engine.start(runs, generator, fresh=self.fresh)
        known = len(self.known[1])
        rate = self.learning_rate * self.clip / (q * (known + 1)) if q > 0 else 0.0
        options: Any = {"dtype": weights[0].dtype, "device": weights[0].device}
        found = torch.zeros(runs, 2, self.size, dtype=torch.float64, device=weights[0].device)
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
            found[:, 0] += score
            found[:, 1] += product * self.clip**2
            for w, t, g in zip(weights, step.total, seen, strict=True):
                w.sub_(t.add_(g), alpha=rate)
        return found

    def _chunk(self) -> int:
        """Trainings that fit at once."""
        import torch

        each = self.engine.bytes_a_run()
        free = CPU_BYTES
        if str(self.device).startswith("cuda"):
            free = int(GPU_SHARE * torch.cuda.mem_get_info()[0])
        return int(min(max(1, free // each), MOST_RUNS))

    def _tell(self, seconds: float, done: int, total: int) -> None:
        """That it takes long, where it does."""
        left = seconds * (total - done) / done
        if left > LONG:
            sys.stderr.write(
                f"No GPU: {total:,} trainings take about {left:,.0f} s on the processor.\n"
            )

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density of outputs given candidates, up to a number that they share; broadcasts."""
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


# -- checks ----------------------------------------------------------------------------------------
def checked(
    model: Any, known: Any, candidates: Any, loss: Any, device: Any, dtype: Any
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """All records, known ones first, and their labels; the number of known ones."""
    import torch

    if not isinstance(model, torch.nn.Module):
        raise DpradError(f"model must be a torch.nn.Module, but is a {type(model).__name__}.")
    weights = next((p for p in model.parameters() if p.requires_grad), None)
    if weights is None:
        raise DpradError("model has no weights to train.")
    x0, y0 = _pair(known, "known")
    x1, y1 = _pair(candidates, "candidates")
    if x0.shape[1:] != x1.shape[1:]:
        raise DpradError(
            f"known and candidates must be alike, but their records have the shapes "
            f"{x0.shape[1:]} and {x1.shape[1:]}."
        )
    _apart(x0, y0, x1, y1)
    # never in half precision: a rate or a norm would be off by a percent
    fine = torch.promote_types(dtype or weights.dtype, torch.float32)
    records = torch.as_tensor(np.concatenate([x0, x1])).to(device, fine)
    labels = torch.as_tensor(np.concatenate([y0, y1])).to(device)
    _per_record(model, records, labels, loss, len(x0))
    return records, labels, len(x0)


def _positive(value: Any, name: str, hint: str) -> float:
    found = number(value, name, low=0, hint=hint)
    if found == 0:
        raise DpradError(f"{name} must be positive, but is {value!r}. {hint}")
    return found


def _pair(pair: Any, name: str) -> tuple[FloatArray, Any]:
    """Records and labels as arrays."""
    try:
        records, labels = pair
        x = np.asarray(records, dtype=float)
        y = np.asarray(labels)
        y = y.astype(np.int64) if y.dtype.kind in "iub" else y.astype(float)
    except (TypeError, ValueError, RuntimeError):
        raise DpradError(f"{name} must be a pair (records, labels) of arrays of numbers.") from None
    if x.ndim < 2 or len(x) != len(y) or y.ndim != 1 or not len(x):
        raise DpradError(
            f"{name} must be a pair (records, labels) with one label a record, but their shapes "
            f"are {x.shape} and {y.shape}."
        )
    for values in (x, y):
        if not np.all(np.isfinite(values)):
            raise DpradError(f"{name} must hold finite numbers; record {_first(values)} does not.")
    return x, y


def _first(x: FloatArray) -> int:
    """The first record that is not finite."""
    return int(np.argmin(np.isfinite(x.reshape(len(x), -1)).all(axis=1)))


def _apart(x0: FloatArray, y0: Any, x1: FloatArray, y1: Any) -> None:
    """No candidate may be among the known records, or stand twice."""
    seen = {(a.tobytes(), b): "also known" for a, b in zip(x0, y0.tolist(), strict=True)}
    for i, (a, b) in enumerate(zip(x1, y1.tolist(), strict=True)):
        key = (a.tobytes(), b)
        if key in seen:
            raise DpradError(
                f"candidate {i} is {seen[key]}. The attacker knows the known records and looks "
                "for another one: leave it out."
            )
        seen[key] = f"the same as candidate {i}"


def _per_record(model: Any, records: Any, labels: Any, loss: Any, known: int) -> None:
    """The loss of a record must not depend on who stands beside it, nor on chance."""
    import torch
    from torch import nn

    mixing = nn.modules.batchnorm._BatchNorm
    for name, module in model.named_modules():
        if isinstance(module, mixing) and module.training:
            raise DpradError(
                f"model has batch normalisation ({name}), which mixes records: gradients of single "
                "records cannot be clipped. Use GroupNorm or LayerNorm."
            )
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p > 0:
            raise DpradError(
                f"model has dropout ({name}), whose chance the attacker would have to know. Call "
                "model.eval(), or leave it out."
            )
    model = copy.deepcopy(model).to(records.device, records.dtype)
    with torch.no_grad():
        try:
            output = model(records[known:])
        except (RuntimeError, ValueError, TypeError) as error:
            raise DpradError(f"model does not take these records: {error}") from None
        if loss is None:
            _known_labels(labels, output, known)
            return
        try:
            each = torch.as_tensor(loss(output, labels[known:]))
            alone = torch.as_tensor(loss(model(records[known : known + 1]), labels[known:][:1]))
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise DpradError(f"loss does not take the model's outputs: {error}") from None
    if each.shape != (len(output),):
        raise DpradError(
            f"loss must return one number a record, but returned the shape {tuple(each.shape)} for "
            f"{len(output)} records. Use reduction='none'."
        )
    if not torch.allclose(each[:1], alone.reshape(1), rtol=1e-3, atol=1e-5):
        raise DpradError(
            "the loss of a record depends on the records beside it, so that gradients of single "
            "records cannot be clipped. Batch normalisation does that; use GroupNorm or LayerNorm."
        )


def _known_labels(labels: Any, output: Any, known: int) -> None:
    """Whole numbers below the number of outputs."""
    if output.dim() != 2:
        raise DpradError(
            f"model must return one row of class scores a record, but returned the shape "
            f"{tuple(output.shape)}. Give a loss of your own for other models."
        )
    if labels.is_floating_point():
        raise DpradError("labels must be whole numbers 0, 1, ...; give a loss for other ones.")
    wrong = ((labels < 0) | (labels >= output.shape[1])).nonzero()
    if len(wrong):
        i = int(wrong[0])
        who = f"known record {i}" if i < known else f"candidate {i - known}"
        raise DpradError(
            f"{who} has the label {int(labels[i])}, which the model does not know: it has "
            f"{output.shape[1]} classes, 0 .. {output.shape[1] - 1}."
        )
