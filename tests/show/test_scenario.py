"""Scenario files: all errors at once, each with its place; answers are the library's."""

from __future__ import annotations

import pytest

import dprad
from dprad import DpradError, Prior, Threat, scenario
from dprad.show.scenario.file import load, parse
from dprad.show.scenario.schema import MANY, TOP


def read(text, tmp_path):
    return parse(text, name="s.toml", folder=tmp_path)


def test_the_example_is_answered_as_the_library_would():
    found = scenario.answer(scenario.builtin())
    prior = dprad.patients.prior()
    for row, release in zip(found.risks, found.scenario.releases, strict=True):
        for risk, (_, threat) in zip(row, found.scenario.threats, strict=True):
            subject = dprad.PureDP(1.0, neighbours="replace-one")
            query = None
            if release.mechanism:
                subject, query = dprad.mechanisms.GRR(epsilon=1.0, size=5), "diagnosis"
            assert risk == dprad.assess(subject, prior=prior, threat=threat, query=query)
    assert found.verdict.outcome == "exceeded" and found.strongest[0] == "an acquaintance"
    for row in found.plans:
        for plan in row:
            assert plan.risk.interval[1] <= 0.1
    (name, result), *others = found.audits
    assert not others and result.verdict == "consistent" and "randomised response" in name
    assert [t for t, _, _ in result.trace][-1] == 20_000
    plain = found.to_dict()
    assert len(plain["answers"]) == 4 and plain["verdict"]["outcome"] == "exceeded"
    assert plain["audits"][0]["trials"] == 20_000


@pytest.mark.parametrize(
    ("population", "expected"),
    [
        ("uniform = 7", Prior.uniform(7)),
        ("counts = { yes = 3, no = 1 }", Prior.from_counts({"yes": 3, "no": 1})),
        ("counts = { 1 = 3, 2 = 1 }", Prior.from_counts({1: 3, 2: 1})),
        ('data = "people.csv"', Prior.from_counts({1: 1, 2: 2})),
        ('data = "people.csv"\ndomain = [0, 3]', Prior.from_counts({0: 0, 1: 1, 2: 2, 3: 0})),
        ('builtin = "patients"\ncolumns = ["smoker"]', None),
    ],
)
def test_populations(population, expected, tmp_path):
    (tmp_path / "people.csv").write_text("value\n2\n1\n2\n")
    text = f'[population]\n{population}\n[[releases]]\nepsilon = 1\nneighbours = "add-remove"\n'
    found = read(text, tmp_path)
    if expected is None:
        assert found.prior.columns == ("smoker",)
    else:
        assert found.prior.support.tolist() == expected.support.tolist()
        assert found.prior.probabilities.tolist() == expected.probabilities.tolist()
    assert found.threats[0][1].describe() == Threat().describe() and found.accepted is None


def test_no_population_is_unknown(tmp_path):
    found = read('[[releases]]\nmu = 0.5\nneighbours = "add-remove"\n', tmp_path)
    assert found.prior.kind == "unknown"
    assert scenario.answer(found).risks[0][0].kind == "upper-bound"


BAD = """titel = "x"
[population]
data = "no.csv"
colums = ["a"]
missing = "kep"
[[threats]]
knows = "age"
eta = "five"
[[threats]]
loss = "absolut"
[[releases]]
mechanism = "lapalce"
epsilon = -1
[[releases]]
mechanism = "gaussian"
epsilon = true
[acepted]
risk = 2
[audit]
trials = 3
"""


def test_all_errors_at_once(tmp_path):
    with pytest.raises(DpradError) as raised:
        read(BAD, tmp_path)
    message = str(raised.value)
    assert "s.toml has 12 errors" in message
    for line, words in [
        (1, "Did you mean 'title'?"),
        (2, "does not exist"),
        (4, "Did you mean 'columns'?"),
        (5, "Did you mean 'keep'?"),
        (7, "A column is named in a list: knows = ['age']"),
        (8, "eta must be a number"),
        (10, "Did you mean 'absolute'?"),
        (12, "Did you mean 'laplace'?"),
        (13, "epsilon must be"),
        (16, "epsilon must be a number, but is True"),
        (17, "Did you mean 'accepted'?"),
        (20, "trials must be"),
    ]:
        assert any(f"line {line}" in part and words in part for part in message.split("\n")), line


FIVE = """[population]
data = "people.csv"
missing = "kep"
[[threats]]
target = ["smokr"]
[[releases]]
mechanism = "laplace"
epsilon = 1
query = 'agee > 30'
[accepted]
risk = 5
[audit]
confidence = "100%"
"""
SIX = """[population]
data = "people.csv"
columns = ["smoker", "aeg"]
[[threats]]
knows = ["smokr"]
eta = -1
[[threats]]
target = ["agee"]
[[releases]]
mechanism = "grr"
epsilon = "one"
clamp = [0, 1]
[[releases]]
epsilon = 1
neighbors = "replace-one"
[[releases]]
mu = 1
delta = 0.1
neighbours = "replace-one"
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (FIVE, [(3, "Did you mean 'keep'"), (5, "Did you mean 'smoker'"), (9, "mean 'age'"),
                (11, "as in 5%"), (13, "strictly between")]),
        (SIX, [(1, "names the column 'aeg'"), (5, "Did you mean 'smoker'"), (6, "eta must be"),
               (8, "Did you mean 'age'"), (11, "epsilon must be a number"),
               (12, "does not apply to grr"), (15, "Did you mean 'neighbours'"),
               (16, "delta goes with epsilon")]),
        # a table that is spoiled causes no other errors
        ("[poplation]\nuniform = 3\n[[releases]]\nmechanism = 'grr'\nepsilon = 1\n[audit]\n",
         [(1, "Did you mean 'population'")]),
        ("[population]\nuniform = 3\n[[relaeses]]\nmechanism = 'grr'\nepsilon = 1\n",
         [(3, "Did you mean 'releases'")]),
        ("[population]\nuniform = 3\n[[releases]]\nmechanism = 'grrr'\nepsilon = 1\n[audit]\n",
         [(4, "Did you mean 'grr'")]),
        ("[population]\ndata = 'latin.csv'\nencoding = 'latin-l'\n[[threats]]\ntarget = ['x']\n"
         "[[releases]]\nmechanism = 'grr'\nepsilon = 1\n", [(3, "encoding must be")]),
        # what a release cannot read is told when the file is loaded, for every release
        ("[population]\ndata = 'people.csv'\n[[releases]]\nmechanism = 'laplace'\nepsilon = 1\n"
         "query = 'age'\nsensitivity = 0.5\n[[releases]]\nmechanism = 'laplace'\nepsilon = 1\n"
         "query = 'smoker'\n[[releases]]\nmechanism = 'grr'\nepsilon = 1\n"
         "query = 'smoker = \"maybe\"'\n",
         [(3, "records differ by more"), (8, "query='smoker = "), (12, "no record has")]),
        # without an attacker that is right, a query still says what is read
        ("[population]\ndata = 'people.csv'\n[[threats]]\neta = -1\n[[releases]]\nepsilon = 1\n"
         "mechanism = 'laplace'\nquery = 'smoker'\n", [(4, "eta must be"), (5, "holds text")]),
    ],
)  # fmt: skip
def test_mistakes_of_all_tables_are_told_together(text, wanted, tmp_path):
    (tmp_path / "people.csv").write_text("smoker,age\nyes,30\nno,40\n")
    (tmp_path / "latin.csv").write_bytes("name,n\nJos\xe9,1\nZo\xeb,2\n".encode("latin-1"))
    with pytest.raises(DpradError) as raised:
        read(text, tmp_path)
    lines = [
        line for line in str(raised.value).replace("s.toml, ", "\n").split("\n") if "line" in line
    ]
    assert len(lines) == len(wanted), lines
    for line, (number, words) in zip(lines, wanted, strict=True):
        assert line.strip().startswith((f"line {number},", f"line {number}:")) and words in line


def test_percentages_encodings_and_decimal_commas(tmp_path):
    rows = "name;size\nJosé;1,5\nAna;2,5\n"
    (tmp_path / "people.csv").write_bytes(rows.encode("cp1252"))
    found = read(
        "[population]\ndata='people.csv'\nencoding='cp1252'\ndecimal=','\n"
        "[[releases]]\nmechanism='laplace'\nepsilon=1\nquery='size'\n"
        "[accepted]\nrisk='5%'\n[audit]\nconfidence='99%'\ntrials=400\n",
        tmp_path,
    )
    assert found.accepted == 0.05 and found.audit["confidence"] == 0.99
    assert found.prior.column("size").tolist() == [2.5, 1.5]
    assert found.prior.column("name").tolist() == ["Ana", "José"]
    assert scenario.answer(found).audits[0][1].verdict == "consistent"
    for wrong in ("risk = 5", "risk = '105%'", "risk = true", "risk = 'some'"):
        with pytest.raises(DpradError, match="risk must be a number"):
            read(f"[accepted]\n{wrong}" + MU, tmp_path)


MU = "\n[[releases]]\nmu=1\nneighbours='add-remove'"
GRR = "\n[[releases]]\nmechanism='grr'\nepsilon=1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = [", "not TOML"),
        ("", r"at least one \[\[releases\]\]"),
        ("[population]\n[[releases]]\nepsilon=1\nneighbours='add-remove'", "give one of builtin"),
        ("[population]\nuniform=2\nunknown=true" + MU, "one of"),
        ("[population]\nuniform=2\ncolumns=['a']" + MU, "go with"),
        ("[population]\ndata='no.csv'" + MU, "does not exist"),
        ("[population]\ncounts={}" + MU, "counts must be a table"),
        ("population = 3" + MU, r"written as \[population\]"),
        ("[releases]\nepsilon=1", r"written as \[\[releases\]\]"),
        ("[[releases]]\nepsilon=1", "neighbours is missing"),
        ("[[releases]]\nneighbours='add-remove'", "one of epsilon, mu, rho and tv"),
        ("[[releases]]\nmu=1\ndelta=0.1\nneighbours='add-remove'", "delta goes with epsilon"),
        ("[[releases]]\nmu=1\nclamp=[0,1]\nneighbours='add-remove'", "needs a mechanism"),
        ("[[releases]]\nmechanism='grr'", "grr needs epsilon"),
        (GRR, "needs a population"),
        ("[population]\nuniform=3" + GRR + "\nclamp=[0,1]", "does not apply"),
        ("[population]\ncounts={a=1,b=2}\n[[releases]]\nmechanism='laplace'\nepsilon=1", "text"),
        ("[population]\nuniform=3\n[[threats]]\ntarget=['x']" + GRR, "names the column 'x'"),
        ("[population]\nuniform=3" + GRR + "\nquery='x'", "names the column 'x'"),
        ("[[releases]]\nmu=1\nneighbours='add-remove'\n[audit]\nclaim=1", "go together"),
        ("title=''" + MU, "title must be text"),
        ('[population]\ndata="a\\u0000.csv"' + MU, "data must be text"),
        ('[[threats]]\nname="a\\n\\nAccepted."' + MU, "one line of printable text"),
        ('title="a\\n\\nAccepted."' + MU, "title must be one line of printable text"),
        ('title="a' + 60 * " " + 'Accepted."' + MU, "without wide gaps"),
        ("title='" + 301 * "a" + "'" + MU, "at most 300 characters"),
        ("[[releases]]\nmu=1\nneighbours='add-remove'\ndoubts=['a\u2028b']", "one line of"),
        ("[population]\nuniform=3" + GRR + '\nquery="a\\n=1"', "query must be one line"),
        ("".join(f"k{i} = 1\n" for i in range(5000)), "100 or more errors"),
        ('[[releases]]\nname="a\\u001b[2J"\nmu=1\nneighbours="add-remove"', "one line"),
    ],
)  # fmt: skip
def test_bad_files(text, words, tmp_path):
    with pytest.raises(DpradError, match=words):
        read(text, tmp_path)


def test_a_function_is_audited(tmp_path):
    (tmp_path / "their_release.py").write_text(
        "def coin(record, rng):\n    return record if rng.random() < 0.9 else 1 - record\n"
    )
    text = (
        "[population]\nuniform = 2\n[[releases]]\nmechanism = 'grr'\nepsilon = 1\n"
        "[audit]\nfunction = 'their_release:coin'\nclaim = 1.0\ntrials = 4000\n"
    )
    found = scenario.answer(read(text, tmp_path), allow_code=True)
    assert found.audits[0][1].verdict == "violated"
    with pytest.raises(DpradError, match="has nothing called"):
        scenario.answer(read(text.replace("coin", "none"), tmp_path), allow_code=True)


def test_functions_that_cannot_be_loaded(tmp_path):
    (tmp_path / "exits_at_once.py").write_text("import sys; sys.exit(0)\n")
    (tmp_path / "no_syntax.py").write_text("def f(:\n")
    (tmp_path / "exits_later.py").write_text("import sys\ndef f(record):\n    sys.exit(0)\n")
    base = "[population]\nuniform=2" + GRR + "\n[audit]\ntrials=50\nclaim=1\nfunction="
    for name, words in [
        ("exits_at_once:f", "SystemExit"),
        ("no_syntax:f", "SyntaxError"),
        ("..a:b", "package.module:function"),
        ("exits_later:f", "run failed at call"),
    ]:
        with pytest.raises(DpradError, match=words):
            scenario.answer(read(f"{base}'{name}'", tmp_path), allow_code=True)


def test_names_of_promises(tmp_path):
    found = read(MU + MU.replace("mu=1", "mu=2"), tmp_path)
    assert [r.name for r in found.releases] == [
        "a promise (mu = 1, add-remove)",
        "a promise (mu = 2, add-remove)",
    ]


def test_units_and_unstated_neighbours(tmp_path):
    """A promise per day for two days, of a household of three; judged by the worse reading."""
    units = MU.replace("mu=1", "mu=0.1\ntimes=4\npeople=3").replace("add-remove", "unknown")
    found = read(units + "\n[accepted]\nrisk=0.3", tmp_path)
    made = found.releases[0].subject(found.prior, found.threats[0][1])
    assert made.mu == pytest.approx(0.6) and made.neighbours == "unknown"
    answers = scenario.answer(found)
    assert answers.code == 0 and max(answers.joint[0].readings.values()) == answers.joint[0].rad
    plan = answers.plans[0][0]
    assert plan.parameter == "mu" and plan.mechanism.mu == pytest.approx(6 * plan.value)
    rho = read("[[releases]]\nrho=0.1\nneighbours='replace-one'", tmp_path).releases[0]
    assert rho.parameter == "rho" and rho.rising
    for text, words in (
        (MU + "\ntimes=0", "times must be"),
        (MU + "\npeople=1.5", "people must be"),
        ("[population]\nuniform=3" + GRR + "\ntimes=3", "'times' does not apply to grr"),
    ):
        with pytest.raises(DpradError, match=words):
            read(text, tmp_path)


def test_files(tmp_path):
    with pytest.raises(DpradError, match="dprad init"):
        scenario.load(tmp_path / "none.toml")
    with pytest.raises(DpradError, match="is not a file"):
        scenario.load(tmp_path)
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DpradError, match="cannot be read"):
        scenario.load(tmp_path / "s.toml")


@pytest.mark.parametrize("key", ["epsilon", "times"])
def test_a_huge_number_is_told_by_its_length(tmp_path, key):
    file = tmp_path / "s.toml"
    file.write_text(
        f'[population]\nuniform = 5\n[[releases]]\nmechanism = "grr"\n{key} = 0x{"f" * 4000}\n'
    )
    with pytest.raises(DpradError, match="16,000 bits"):
        load(file)


HUGE = "0x" + "f" * 9000
KEYS = [(table, key) for table, of in TOP.items() if isinstance(of, dict) for key in of]


@pytest.mark.parametrize(
    "value", [HUGE, f"[{HUGE}]", f"{{ a = {HUGE} }}", '["' + "é" * 9000 + '"]']
)
def test_a_monstrous_value_is_a_short_sentence_wherever_it_stands(value, tmp_path):
    file = tmp_path / "s.toml"
    rest = '[[releases]]\nmechanism = "grr"\nepsilon = 1\n'
    for table, key in (("", "title"), ("", "sensitive"), *KEYS):
        head = "" if not table else f"[[{table}]]\n" if table in MANY else f"[{table}]\n"
        people = "" if table == "population" else "[population]\nuniform = 2\n"
        more = "" if table == "releases" else rest
        file.write_text(f"{head}{key} = {value}\n{people}{more}", encoding="utf-8")
        said = ""
        try:
            scenario.load(file)
        except DpradError as error:
            said = str(error)
        assert said or (key, value[0]) == ("sensitive", "["), (table, key)
        assert max(map(len, said.split("\n"))) < 900, (table, key)
