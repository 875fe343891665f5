"""The records of the API, a module a resource. Structs only, no I/O."""
