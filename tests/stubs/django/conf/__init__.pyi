class LazySettings:
    CACHES: dict[str, dict[str, str]]

settings: LazySettings
