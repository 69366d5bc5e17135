"""DP-SGD: what a training promises, how it looks to an attacker, and what it gives away."""
