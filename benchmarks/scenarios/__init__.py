"""The scenarios. Each module has a ``run`` that returns the rows of its results."""
