"""The clients that are compared with each other."""

from benchmarks.peers.base import Contender
from benchmarks.peers.floor import Floor
from benchmarks.peers.neon_api import NeonApi
from benchmarks.peers.neon_sdk_contender import SdkOnFixedAnswers
from benchmarks.peers.ours import Ours
from benchmarks.peers.pydantic_models import HttpxPydantic

CONTENDERS: tuple[type[Contender], ...] = (
    Ours,
    Floor,
    NeonApi,
    HttpxPydantic,
    SdkOnFixedAnswers,
)
