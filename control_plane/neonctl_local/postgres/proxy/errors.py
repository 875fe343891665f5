"""The errors that a client of the proxy receives."""


class ComputeRefusedError(Exception):
    """A connection was refused. The client receives the message and the SQLSTATE as FATAL."""

    def __init__(self, message: str, code: str = "XX000") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ProtocolError(ComputeRefusedError):
    """A violation of the Postgres protocol, or another error with its SQLSTATE, as in PgBouncer."""

    def __init__(self, message: str, code: str = "08P01") -> None:
        super().__init__(message, code)
