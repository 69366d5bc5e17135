"""The questions users ask, one file each."""
