"""The paper as published, for comparison: its experiments, attack, audit and Monte Carlo."""
