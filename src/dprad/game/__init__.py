"""A prior combined with a threat: classes of records, and which guesses are right about them."""
