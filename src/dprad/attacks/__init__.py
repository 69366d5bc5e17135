"""Attacks: output and knowledge in, guess out."""
