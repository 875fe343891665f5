"""The errors of the real databases of a local control plane."""


class PostgresUnavailableError(RuntimeError):
    """Postgres cannot be used on this machine. The message names the remedy."""


class ClusterError(Exception):
    """Work on a Postgres cluster failed. The message becomes the ``error`` of the operation."""
