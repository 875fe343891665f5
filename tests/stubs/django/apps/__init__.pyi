from collections.abc import Iterable, Iterator

class Options:
    def get_fields(self) -> Iterable[object]: ...

class Model:
    _meta: Options

class AppConfig:
    label: str
    def get_models(self, include_auto_created: bool = ...) -> Iterator[type[Model]]: ...

class Apps:
    def get_app_configs(self) -> Iterable[AppConfig]: ...

apps: Apps
