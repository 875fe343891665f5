"""SQL over HTTP and WebSocket, as Neon's serverless driver sends it."""

from typing import Final

SQL_PATH: Final = "/sql"
WEBSOCKET_PATH: Final = "/v2"
