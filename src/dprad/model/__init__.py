"""The vocabulary: priors, threats, guarantees, and results with their explanations."""
