"""Protocols over time: memoised noise, one family per file."""
