"""Protocols for several attributes, one family per file."""
