"""What the package costs, beside what else there is: ``python -m benchmarks``."""
