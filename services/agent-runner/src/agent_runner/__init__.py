"""Asks the model and proposes turns; holds the model's key and cannot reach the shop."""
