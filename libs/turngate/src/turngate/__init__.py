"""Turngate on one machine, and the operator's command line."""
