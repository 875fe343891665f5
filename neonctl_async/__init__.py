"""neonctl_async: the asyncio client for the Neon control-plane API that waits on operations."""
