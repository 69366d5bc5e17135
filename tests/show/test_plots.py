"""plot_risk draws what assess answers, from classes, functions or finished lines."""

from __future__ import annotations

import matplotlib.figure
import numpy as np
import pytest

from dprad import DpradError, Prior, PureDP, Threat, assess, by_group, plots
from dprad.mechanisms import GRR, OUE, SHE, Channel, Gaussian, Laplace, Repeated
from dprad.runtime.progress import listen

EPSILONS = np.linspace(0.0, 4.0, 7)


def drawn(*about, **arguments):
    ax = matplotlib.figure.Figure().add_subplot()
    assert plots.plot_risk(*about, ax=ax, **arguments) is ax
    return ax


def test_lines_are_what_assess_answers():
    prior, threat = Prior.from_counts({"a": 5, "b": 3, "c": 2}), Threat(knows="everything")
    ax = drawn([GRR, OUE], EPSILONS, prior=prior, threat=threat)
    assert [line.get_label() for line in ax.lines] == ["GRR", "OUE"]
    for line, kind in zip(ax.lines, (GRR, OUE), strict=True):
        told = [assess(kind(epsilon=e, size=3), prior=prior, threat=threat).rad for e in EPSILONS]
        assert line.get_xdata().tolist() == EPSILONS.tolist()
        assert line.get_ydata().tolist() == told and told[-1] > told[1] > 0


def test_each_family_gets_the_arguments_that_it_takes():
    prior, near = Prior.uniform(5), Threat(loss="absolute", eta=1)
    families = {"noise": Laplace, "promise": PureDP, "two": lambda epsilon: Channel(np.eye(5))}
    ax = drawn(
        families, [2.0, 1.0], prior=prior, threat=near, sensitivity=4, neighbours="replace-one"
    )
    noise = [assess(Laplace(epsilon=e, sensitivity=4), prior=prior, threat=near) for e in (1, 2)]
    promise = [
        assess(PureDP(e, neighbours="replace-one"), prior=prior, threat=near) for e in (1, 2)
    ]
    assert ax.lines[0].get_ydata().tolist() == [risk.rad for risk in noise]
    assert ax.lines[1].get_ydata().tolist() == [risk.rad for risk in promise]
    assert ax.lines[1].get_label() == "promise (bound)" and ax.lines[1].get_linestyle() == "--"


def test_functions_of_one_number():
    ax = drawn(lambda flip: Channel([[1 - flip, flip], [flip, 1 - flip]]), [0.1, 0.3],
               prior=Prior.uniform(2), accepted=0.2)  # fmt: skip
    assert ax.get_xlabel() == "flip" and ax.lines[0].get_label() == "Channel"
    assert ax.lines[0].get_ydata() == pytest.approx([0.4, 0.2])
    ax = drawn(lambda e: GRR(epsilon=e, size=2), [1.0], prior=Prior.uniform(2), parameter="epsilon")
    assert ax.get_xlabel() == "epsilon"
    assert drawn(Gaussian, [1.0], prior=Prior.uniform(2)).get_xlabel() == "sigma"


def test_estimates_have_a_band_and_say_how_far_they_are():
    told = []
    once = Laplace(epsilon=1.0)
    with listen(lambda what, done, total: told.append((what, done, total))):
        ax = drawn(Repeated, [1, 3], prior=Prior.uniform(2), parameter="times", mechanism=once,
                   trials=300)  # fmt: skip
    assert list(dict.fromkeys(told)) == [("points", k, 2) for k in range(3)]
    low, high = assess(Repeated(once, 3), prior=Prior.uniform(2), trials=300).interval
    path = ax.collections[0].get_paths()[0].vertices
    assert {low, high} <= set(path[path[:, 0] == 3.0][:, 1].tolist())


def test_finished_lines_are_drawn_as_they_are():
    risks = [assess(GRR(epsilon=e, size=2), prior=Prior.uniform(2)) for e in (1, 2)]
    ax = drawn({"mine": ([1, 2], risks)})
    assert ax.get_xlabel() == "epsilon"
    assert ax.lines[0].get_ydata().tolist() == [risk.rad for risk in risks]


def test_groups_most_exposed_first_with_their_shares_and_the_average():
    prior = Prior.from_counts({"a": 90, "b_{$": 7, "c": 3})
    table = by_group(GRR(epsilon=1, size=3), prior=prior, by="record")
    ax = matplotlib.figure.Figure().add_subplot()
    assert plots.plot_groups(table, ax=ax) is ax
    assert [t.get_text() for t in ax.get_yticklabels()] == ["c (3%)", r"b_{\$ (7%)", "a (90%)"]
    assert [bar.get_width() for bar in ax.patches] == [group.rad for group in table]
    assert ax.patches[0].get_y() > ax.patches[2].get_y()
    assert set(ax.lines[0].get_xdata()) == {table.overall.rad}
    assert ax.lines[0].get_label() == f"average: {table.overall.rad:.4f}"
    assert ax.get_xlabel() == "extra risk"


def test_groups_that_are_many_bounded_or_estimated():
    prior = Prior.from_counts(dict(enumerate(range(1, 21))))
    promise = by_group(PureDP(1.0, neighbours="replace-one"), prior=prior, by="record")
    ax = plots.plot_groups(promise, matplotlib.figure.Figure().add_subplot())
    assert len(ax.patches) == 15 and ax.get_xlabel() == "extra risk (5 more groups not shown)"
    assert ax.texts[0].get_text().startswith("at most ")
    few = Prior.from_counts({"a": 3, "b": 1})
    rough = by_group(Repeated(SHE(epsilon=1, size=2), 2), prior=few, by="record", trials=300)
    ax = plots.plot_groups(rough, matplotlib.figure.Figure().add_subplot())
    assert rough.groups[0].kind == "estimate"
    ends = [x for part in ax.collections for s in part.get_segments() for x in s[:, 0].tolist()]
    told = [x for group in rough for x in group.interval]
    assert sorted(ends) == pytest.approx(sorted(told), abs=1e-12)


@pytest.mark.parametrize(
    ("about", "arguments", "words"),
    [
        ((GRR,), {}, "at which values"),
        ((GRR, "axis"), {}, "number"),
        ((GRR, 5), {}, "An axis is given as ax="),
        ((GRR, []), {}, "empty"),
        ((GRR(epsilon=1, size=3), [1]), {}, "but got a GRR"),
        (([GRR, GRR], [1]), {}, "two lines are called GRR"),
        (([GRR, Gaussian], [1]), {}, "by epsilon, sigma"),
        ((GRR, [1]), {"siz": 3}, "siz is no argument of GRR"),
        (({}, [1]), {}, "at least one"),
        ((lambda e: 3, [1]), {}, "but got a int"),
    ],
)
def test_bad_input(about, arguments, words):
    with pytest.raises(DpradError, match=words):
        drawn(*about, prior=Prior.uniform(3), **arguments)
