"""The words of the product: what is known, feared and promised, and what an answer says."""
