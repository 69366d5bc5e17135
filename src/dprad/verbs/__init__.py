"""The questions users ask, one per file."""
