"""The records of the API: frozen msgspec Structs, one module per resource, no I/O."""
