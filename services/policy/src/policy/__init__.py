"""Judges a quoted turn against the tenant's pack: forward, hold or refuse."""
