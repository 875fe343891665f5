"""The history of clusters: archived WAL, and copies from which a recovery starts."""
