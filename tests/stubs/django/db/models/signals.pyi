from collections.abc import Callable
from typing import TypeAlias
from weakref import ReferenceType

_Receiver: TypeAlias = Callable[..., object]

class ModelSignal:
    receivers: list[tuple[object, ReferenceType[_Receiver] | _Receiver, *tuple[object, ...]]]

pre_migrate: ModelSignal
post_migrate: ModelSignal
