"""What others do: each peer as the benchmarks drive it."""
