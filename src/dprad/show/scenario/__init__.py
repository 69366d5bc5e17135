"""Scenario files: population, threats, releases and the accepted risk, in one TOML file.

`load` reads a file and reports all its errors at once; `answer` answers every question in it.
`EXAMPLE` is what `dprad init` writes.
"""

from __future__ import annotations

from dprad.show.scenario.answers import Answers, answer
from dprad.show.scenario.file import Scenario, builtin, load

__all__ = ["EXAMPLE", "Answers", "Scenario", "answer", "builtin", "load"]

EXAMPLE = """\
# What does epsilon mean for this data? Try:
#   dprad assess scenario.toml
#   dprad calibrate scenario.toml
#   dprad report scenario.toml -o report.html
#   dprad report scenario.toml --evidence evidence
#   dprad explore scenario.toml

title = "Diagnoses in a patient survey"

# What is known about the population: a table, counts, equally likely values, or nothing.
[population]
builtin = "patients"              # a synthetic table that comes with dprad
# data = "people.csv"             # a CSV or Parquet file, one row per person, next to this file
# columns = ["age", "diagnosis"]  # of data or builtin: the columns of a record (default: all)
# weight = "weight"               # a column of survey weights
# missing = "keep"                # missing values: keep, drop or refuse
# encoding = "latin-1"            # of a CSV file that is not in UTF-8
# decimal = ","                   # of a CSV file with decimal commas
# domain = [0, 100]               # all whole values of the only column, observed or not
# whole = true                    # the table is the whole population, not a sample of it
# counts = { yes = 30, no = 70 }  # instead of a table
# uniform = 101                   # instead: this many equally likely values 0, 1, 2, ...
# unknown = true                  # instead: assume nothing (promises only)

# The attackers. As many as you like; without any, a standard set is asked about, from a stranger
# to somebody with the whole record, for each column in `sensitive = ["diagnosis"]` (first line of
# the file; default: every column).
[[threats]]
name = "a stranger"
knows = "nothing"                 # nothing, everything, or a list of columns
target = ["diagnosis"]            # what they guess (default: the whole record)
# loss = "absolute"               # exact (default), absolute, relative, haversine
# eta = 5                         # a guess counts if its loss is at most this

[[threats]]
name = "an acquaintance"
knows = ["age", "region", "smoker"]
target = ["diagnosis"]

# What is released. A mechanism, or only a promise.
[[releases]]
name = "randomised response"
mechanism = "grr"                 # `dprad assess --help` lists them
epsilon = 1.0
query = "diagnosis"               # the column it reads (default: the target)
# query = 'smoker = "yes"'        # or a comparison, which reads 1 where it holds, else 0

[[releases]]
name = "any mechanism with this promise"
epsilon = 1.0                     # with delta, or mu, rho or tv
neighbours = "replace-one"        # or "add-remove", or "unknown"; required for a promise
# times = 365                     # that many releases: a promise per day, for a year
# people = 4                      # records that change together: of a household, or of one person

# The extra risk that is accepted, between 0 and 1, or as "10%".
[accepted]
risk = 0.1                        # of all releases together, on average over people
# worst = true                    # instead: of the most exposed person
# by = "the data board"           # who accepted it, and when: printed in the report
# on = "2026-01-31"
# review = "2027-01-31"           # when to look at it again: in an evidence pack

# Optional: audit the mechanisms above, or your own function, with this many calls.
[audit]
trials = 20_000
# function = "package.module:function"
# claim = 1.0                     # its epsilon, for replaced records
"""
