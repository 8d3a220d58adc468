"""A deterministic stand-in for the Messages API, for demos, tests and benchmarks."""
