"""Arrays, intervals and searches: mathematics independent of privacy."""
