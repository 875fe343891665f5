"""The clients that most scenarios compare."""

from benchmarks.peers.base import Contender
from benchmarks.peers.floor import Floor
from benchmarks.peers.neon_api import NeonApi
from benchmarks.peers.neon_sdk_contender import SdkOnFixedResponses
from benchmarks.peers.ours import Ours
from benchmarks.peers.pydantic_models import HttpxPydantic

CONTENDERS: dict[str, type[Contender]] = {
    kind.name: kind for kind in (Ours, Floor, NeonApi, HttpxPydantic, SdkOnFixedResponses)
}
