"""A store on a Redis server, for processes on many machines."""

from typing import Any, Final

import msgspec
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from neonctl_async.models.secret import Secret
from neonctl_async.transport.shared.messages import Reply, Request
from neonctl_async.transport.shared.table import AHEAD, MINUTE, REFILL_STEP, SECOND, VALID

KEY_PREFIX = "neonctl-async:rate-budget:3:"
"""The start of every key. The number is the version of the data and of the rules."""
KEEP = 60 * MINUTE
"""The time after which the key of an unused account is deleted."""

SCRIPT: Final = f"""
local key = KEYS[1]
local client, limit, longest, slots, returned, wants = unpack(cmsgpack.unpack(ARGV[1]))
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local set_back = (redis.call('ZSCORE', key, 'clock') or now) - now
if set_back > 0 then -- no time has passed
  for _, name in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    redis.call('ZINCRBY', key, -set_back, name)
  end
end
local unknown = 0
for _, slot in ipairs(slots) do
  local name = client .. ':' .. slot[1] .. ':' .. slot[2]
  unknown = unknown + redis.call('ZADD', key, now - slot[3], name)
end
for _, slot in ipairs(returned) do
  redis.call('ZREM', key, client .. ':' .. slot[1] .. ':' .. slot[2])
end
redis.call('ZADD', key, now, 'clock')
redis.call('ZREMRANGEBYSCORE', key, '-inf', now - {MINUTE})
redis.call('PEXPIRE', key, {KEEP})

local minute, routes, refills, clients, closed_until = {{}}, {{}}, {{}}, {{}}, now
local count, group = 0, nil
local rows = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
for i = 1, #rows, 2 do
  local other, route = string.match(rows[i], '^(%x+):%d+:(.*)$')
  local ended_at = tonumber(rows[i + 1])
  if other then
    table.insert(minute, ended_at)
    if not clients[other] then clients[other], count = true, count + 1 end
    if ended_at > now - {SECOND} then
      routes[route] = routes[route] or {{}}
      table.insert(routes[route], ended_at)
    end
    if ended_at <= now then
      if math.floor(ended_at / {REFILL_STEP}) ~= group then table.insert(refills, {{0, 0}}) end
      group = math.floor(ended_at / {REFILL_STEP})
      refills[#refills] = {{ended_at + {MINUTE} - now, refills[#refills][2] + 1}}
    elseif route == '' then
      closed_until = math.max(closed_until, ended_at)
    end
  end
end

local function free_at(ends, limit, period)
  if limit == 0 or #ends < limit then return now end
  return math.min(ends[#ends - limit + 1], now) + period
end

local grants, denials = {{}}, {{}}
for _, want in ipairs(wants) do
  local route, route_limit, numbers = unpack(want)
  local ends = routes[route] or {{}}
  for _, number in ipairs(numbers) do
    local at = math.max(
      closed_until, free_at(minute, limit, {MINUTE}), free_at(ends, route_limit, {SECOND}))
    if unknown > 0 or at > now + {AHEAD} then
      table.insert(denials, {{route, at - now}})
      break
    end
    table.insert(grants, {{number, at - now}})
    local ended_at = at + {VALID} + longest
    redis.call('ZADD', key, ended_at, client .. ':' .. number .. ':' .. route)
    table.insert(minute, ended_at)
    table.insert(ends, ended_at)
    if not clients[client] then clients[client], count = true, count + 1 end
  end
end
return cmsgpack.pack({{#minute, count, unknown, grants, denials, refills}})
"""
"""The rules of ``table.exchange``, on a sorted set of slots. The score of each slot is its end."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Reply).decode


class RedisStore:
    """Keeps the slots of an account on a Redis server, by the server's clock."""

    _redis: Any  # the types of redis-py are incomplete

    def __init__(self, url: Secret, name: str, account: str) -> None:
        self.name = name
        self._key = KEY_PREFIX + account
        redis: Any = Redis
        self._redis = redis.from_url(
            url.reveal(),
            retry=Retry(NoBackoff(), 1),  # the server may have closed an idle connection
            protocol=2,  # Redis 5 does not know the default of redis-py, 3
            max_connections=2,
            driver_info=None,  # otherwise redis-py reads files while it connects
        )
        self._script = self._redis.register_script(SCRIPT)

    async def exchange(self, request: Request) -> Reply:
        """Record ends, and grant slots, in one round trip. Raise redis.RedisError if that fails."""
        return _decode(await self._script(keys=[self._key], args=[_encode(request)]))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()
