"""Processes, memory, progress and files that survive a crash."""
