"""DP-SGD: the promise of a training, what an attacker sees of it, and what it reveals."""
