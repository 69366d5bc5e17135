"""Arrays, intervals, searches: mathematics that knows nothing of privacy."""
