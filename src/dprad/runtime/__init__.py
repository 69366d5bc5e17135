"""Processes, memory, progress and crash-safe files."""
