"""Labels, the evaluation harness and the benchmarks."""
