"""A prior and a threat put together: classes of records, and which guesses are right about them."""
