"""Only double quotes quote: a guessed single quote once swallowed a thousand rows."""

from __future__ import annotations

from dprad import Prior


def test_a_lone_apostrophe_is_a_value(tmp_path):
    file = tmp_path / "q.csv"
    rows = ["p,q", "a,'", *(f"x{i % 7},y{i % 3}" for i in range(1000)), "b,'"]
    file.write_text("\n".join(rows) + "\n")
    prior = Prior.from_data(file)
    assert prior.rows == 1002
    assert prior.size == 23


def test_double_quotes_still_quote(tmp_path):
    file = tmp_path / "q.csv"
    file.write_text('p,q\n"a, b","say ""so"""\nc,d\n')
    prior = Prior.from_data(file)
    assert prior.support["p"].tolist() == ["a, b", "c"]
    assert prior.support["q"].tolist() == ['say "so"', "d"]
