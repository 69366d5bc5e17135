"""Table releases: what is published about many people, described as it is published."""

from dprad.mechanisms.tables.keys import Keyed
from dprad.mechanisms.tables.kinds import Counts, Histogram, Marginals, Mean, Sums
from dprad.mechanisms.tables.published import Published
from dprad.mechanisms.tables.release import TableRelease

__all__ = ["Counts", "Histogram", "Keyed", "Marginals", "Mean", "Published", "Sums", "TableRelease"]
