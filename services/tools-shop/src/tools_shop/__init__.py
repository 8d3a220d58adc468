"""The shop: quotes what a turn would do, and does exactly what was forwarded, once."""
