"""Unary encodings over time, everything known: did this person take part? Two closed forms.

With lambda(c) the likelihood ratio of a bit with c ones, rho the prior of the values, and S the sum
of rho_y lambda(c_y) over all values but x, a person with value x gains

    E ( (1 - rho_x) lambda(c_x) - S )_+ ,      E S = 1 - rho_x ,   Var S = V sum_(y != x) rho_y^2 ,

all counts drawn as if no bit were set, and V the variance of lambda there. Put
``a = (1 - rho_x)(lambda(c) - 1)``. Replacing S by its mean can only lower a convex function, and
``2 t_+ = t + |t|`` with ``E|t| <= sqrt(E t^2)`` bounds it from above, so the gain is between

    (1 - rho_x) E (lambda - 1)_+      and      E ( a + sqrt(a^2 + Var S) ) / 2 .

The lower end is what the attack gains that looks at the bit of x alone. The ends differ by less
than Var S / (4 |a|) on average: little, unless few values have most of the prior. O(k R).
"""

from __future__ import annotations

import numpy as np

from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons
from dprad.mechanisms.over_time.base import Memoised, log_factorials
from dprad.mechanisms.over_time.bit_chain import UnaryChain
from dprad.numerics.arrays import FloatArray, IntArray, complements, distinct
from dprad.runtime.memory import block

# The error of sums over counts, as a share of the result; numbers of a block.
ROUNDING, BLOCK_ENTRIES = 1e-11, 2**18


def enclosed(
    mechanism: Memoised, game: Classes, codes: IntArray, pi: FloatArray
) -> Solution | None:
    """The enclosure; None for other protocols and attackers, or if a class reads several values."""
    if not isinstance(mechanism, UnaryChain) or mechanism.periods > 1 or game.forced is not None:
        return None
    sets, kept = game.sets, np.flatnonzero(pi > 0)
    if not isinstance(sets, Singletons) or not game.everything_known or game.weighted:
        return None
    rho = np.bincount(codes[kept], weights=pi[kept], minlength=mechanism.size).astype(float)
    named = np.zeros(len(game.probabilities), dtype=bool)
    named[sets.index] = True
    own = kept[named[game.class_of[kept]]]
    pairs = distinct(game.class_of[own] * mechanism.size + codes[own])[0]
    if len(pairs) != len(sets.index):
        return None
    asked = np.bincount(codes[own], weights=pi[own], minlength=mechanism.size).astype(float)

    unset, lift = mechanism.laws(mechanism.reports)
    ways = log_factorials(mechanism.reports)
    law = np.exp(unset + ways[-1] - ways - ways[::-1])
    law /= law.sum()
    gain = np.expm1(lift)
    weight, rest = asked[asked > 0], complements(rho)[asked > 0]
    low = float(weight @ rest) * float(law @ np.maximum(gain, 0.0))
    others = _squares(rho)[asked > 0]
    high = float(weight @ _above(rest, others * float(law @ gain**2), gain, law))
    # said by whoever looks at one bit: about a person who is in with probability rho
    said = law[gain > 0].sum(), (law * np.exp(lift))[gain > 0].sum()
    luck = float(weight @ (rest * said[0] + (1.0 - rest) * said[1]))
    return Solution(
        rad=(low + high) / 2,
        success_out=luck,
        rero=float(weight.sum()),
        method="between two closed forms for membership",
        interval=(low * (1.0 - ROUNDING), max(high, low) * (1.0 + ROUNDING)),
    )


def _squares(rho: FloatArray) -> FloatArray:
    """The sum of the squares of all other masses, also where one value has nearly all."""
    heavy = int(np.argmax(rho))
    light = rho.copy()
    light[heavy] = 0.0
    rest = np.full(len(rho), rho[heavy] ** 2)
    rest[heavy] = 0.0
    return np.asarray(rest + np.maximum(float(light @ light) - light**2, 0.0))


def _above(rest: FloatArray, spread: FloatArray, gain: FloatArray, law: FloatArray) -> FloatArray:
    """``E (a + sqrt(a^2 + spread)) / 2`` for each value, ``a = rest gain``."""
    found, step = np.empty(len(rest)), max(1, block(BLOCK_ENTRIES) // len(gain))
    for i in range(0, len(rest), step):
        a = rest[i : i + step, None] * gain
        # without cancellation where a is negative
        root = np.sqrt(a * a + spread[i : i + step, None])
        with np.errstate(invalid="ignore", divide="ignore"):
            below = np.where(root > a, spread[i : i + step, None] / (root - a), 0.0)
        found[i : i + step] = np.where(a > 0, a + root, below) @ law / 2
    return found
