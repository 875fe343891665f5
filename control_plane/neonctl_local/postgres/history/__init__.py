"""The history of clusters: archived WAL, and copies from which recovery starts."""
