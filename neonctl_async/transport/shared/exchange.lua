-- The rules of ledger.py and leasing.py, which explain them, for Redis. KEYS[1] is the account.
-- ARGV[1] is a Request as JSON. ARGV[2], the time in milliseconds, is only for tests.
-- The result is a Reply as MessagePack. A test compares both implementations.

local MINUTE, SECOND = 60000, 1000
local MINUTE_STEP, SECOND_STEP = 250, 10
local FORGET, ACTIVE, PATIENCE = 15000, 3000, 1000
local VALID_ALONE, VALID = 5000, 1000
local AHEAD_ALONE, AHEAD = 1000, 300
local RETRY_UNKNOWN, RETRY_MIN, RETRY_MAX = 250, 20, 2000
local CALLS_PER_POLL = 9
local MAX_REFILLS = 20
local UNLIMITED = 1000000
local KEEP = 120000 -- how long the data of an unused account is kept

-- Positions of the fields of the arrays, which are the structs of Python.
local GENERATION, NOW, CLOSED_UNTIL, CALLS_SINCE_POLL = 1, 2, 3, 4
local ENDS, ROUTES, LEASES, HOLDERS = 5, 6, 7, 8
local ROUTE, COUNT, EXPIRES_AT = 1, 2, 3 -- of a lease
local SINCE, CALLS, POLLS, UNTIL = 1, 2, 3, 4 -- of what a client lacks
local SEEN_AT, HOLDER_CALLS, WAITS, LACKS, PROJECTS = 1, 2, 3, 4, 5 -- of a client

local holder, generation, known_used, limit, longest, calls, waits, ended, returned, adopted, wants, projects =
  unpack(cjson.decode(ARGV[1]))
local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local packed = redis.call('GET', KEYS[1])
local is_readable, state = pcall(cmsgpack.unpack, packed or '')
if not (packed and is_readable and type(state) == 'table' and #state == 8) then
  state = { holder .. '@' .. string.format('%d', now), now, 0, 0, {}, {}, {}, {} }
end

local function total(ends)
  local sum = 0
  for _, one in ipairs(ends) do
    sum = sum + one[2]
  end
  return sum
end

local function used_slots()
  local sum = total(state[ENDS])
  for _, lease in pairs(state[LEASES]) do
    sum = sum + lease[COUNT]
  end
  return sum
end

local function insert(ends, time, count, step)
  time = math.ceil(time / step) * step
  local index = #ends
  while index > 0 and ends[index][1] > time do
    index = index - 1
  end
  if index > 0 and ends[index][1] == time then
    ends[index][2] = ends[index][2] + count
  else
    table.insert(ends, index + 1, { time, count })
  end
end

local function add_end(route, time, count)
  if time + MINUTE > state[NOW] then
    insert(state[ENDS], time, count, MINUTE_STEP)
  end
  if time + SECOND > state[NOW] then
    state[ROUTES][route] = state[ROUTES][route] or {}
    insert(state[ROUTES][route], time, count, SECOND_STEP)
  end
end

local function after(ends, time)
  local kept = {}
  for _, one in ipairs(ends) do
    if one[1] > time then
      kept[#kept + 1] = one
    end
  end
  return kept
end

local function shift(by)
  state[CLOSED_UNTIL] = state[CLOSED_UNTIL] + by
  for _, one in ipairs(state[ENDS]) do
    one[1] = one[1] + by
  end
  for _, ends in pairs(state[ROUTES]) do
    for _, one in ipairs(ends) do
      one[1] = one[1] + by
    end
  end
  for _, lease in pairs(state[LEASES]) do
    lease[EXPIRES_AT] = lease[EXPIRES_AT] + by
  end
  for _, client in pairs(state[HOLDERS]) do
    client[SEEN_AT] = client[SEEN_AT] + by
    for _, lack in pairs(client[LACKS]) do
      lack[SINCE], lack[UNTIL] = lack[SINCE] + by, lack[UNTIL] + by
    end
  end
end

local function advance()
  if now < state[NOW] then
    shift(now - state[NOW])
  end
  state[NOW] = now
  for name, lease in pairs(state[LEASES]) do
    if lease[EXPIRES_AT] <= now then
      add_end(lease[ROUTE], lease[EXPIRES_AT], lease[COUNT])
      state[LEASES][name] = nil
    end
  end
  state[ENDS] = after(state[ENDS], now - MINUTE)
  for route, ends in pairs(state[ROUTES]) do
    local kept = after(ends, now - SECOND)
    state[ROUTES][route] = #kept > 0 and kept or nil
  end
  for name, client in pairs(state[HOLDERS]) do
    for route, lack in pairs(client[LACKS]) do
      if lack[UNTIL] <= now then
        client[LACKS][route] = nil
      end
    end
    if client[SEEN_AT] + FORGET <= now then
      state[HOLDERS][name] = nil
    end
  end
end

local function check_generation()
  if generation == '' or generation == state[GENERATION] then
    return
  end
  local missing = known_used - used_slots()
  if missing > 0 then
    insert(state[ENDS], now, missing, MINUTE_STEP)
  end
  state[CLOSED_UNTIL] = math.max(state[CLOSED_UNTIL], now + SECOND)
end

local function reduce(number, count)
  local name = holder .. '/' .. string.format('%d', number)
  local lease = state[LEASES][name]
  if lease then
    lease[COUNT] = lease[COUNT] - count
    if lease[COUNT] <= 0 then
      state[LEASES][name] = nil
    end
  end
end

local function settle()
  for _, one in ipairs(ended) do
    reduce(one[1], one[4])
    add_end(one[2], now - one[3], one[4])
  end
  for _, one in ipairs(returned) do
    reduce(one[1], one[2])
  end
  for _, one in ipairs(adopted) do
    local name = holder .. '/' .. string.format('%d', one[1])
    state[LEASES][name] = { one[2], one[3], now + longest }
  end
end

advance()
check_generation()
settle()
local mine = state[HOLDERS][holder] or { now, 0, 0, {} }
state[HOLDERS][holder] = mine
mine[SEEN_AT], mine[HOLDER_CALLS], mine[WAITS], mine[PROJECTS] = now, calls, waits, projects

local minute_limit = limit > 0 and limit or UNLIMITED
local active, waiting, others_calls, others_waits, others_projects = 1, 0, 0, 0, 0
for name, client in pairs(state[HOLDERS]) do
  if name ~= holder then
    others_waits = others_waits + client[WAITS]
    others_projects = others_projects + (client[PROJECTS] or 0)
    if client[SEEN_AT] + ACTIVE > now then
      active = active + 1
      others_calls = others_calls + client[HOLDER_CALLS]
    end
    if next(client[LACKS]) then
      waiting = waiting + 1
    end
  end
end
local alone = active == 1
local valid = alone and VALID_ALONE or VALID
local used = used_slots()
local grants, denials = {}, {}

-- Return a list of {route, lack, whether it is older than `since`} of the other clients.
local function lacks_of_others(since)
  local list = {}
  for name, client in pairs(state[HOLDERS]) do
    if name ~= holder then
      for route, lack in pairs(client[LACKS]) do
        local is_earlier = lack[SINCE] < since or (lack[SINCE] == since and name < holder)
        list[#list + 1] = { route, lack, is_earlier }
      end
    end
  end
  return list
end

local function delay_of(ends, period, lacking)
  if lacking <= 0 then
    return 0
  end
  for _, one in ipairs(ends) do
    lacking = lacking - one[2]
    if lacking <= 0 then
      return math.max(one[1] + period - now, 0)
    end
  end
  return UNLIMITED
end

-- Lease up to `count` slots and return how many. Others get `minute` and `route` slots first.
local function take(slots, count, minute, route, ahead)
  local taken = 0
  while taken < count do
    local delay = math.max(
      delay_of(state[ENDS], MINUTE, used + minute + 1 - minute_limit),
      delay_of(slots.ends, SECOND, slots.used + route + 1 - slots.limit),
      slots.delays[#slots.delays] or 0
    )
    if delay > ahead then
      slots.retry_after = delay == UNLIMITED and RETRY_UNKNOWN
        or math.min(math.max(delay - ahead, RETRY_MIN), RETRY_MAX)
      break
    end
    slots.delays[#slots.delays + 1] = delay
    used = used + 1
    slots.used = slots.used + 1
    taken = taken + 1
  end
  return taken
end

local function before_call(want_route, since)
  local minute, route = 0, 0
  for _, one in ipairs(lacks_of_others(since)) do
    local before = one[3] and one[2][CALLS] or 0
    if state[CALLS_SINCE_POLL] >= CALLS_PER_POLL and one[2][POLLS] > 0 then
      before = before + 1
    end
    minute = minute + before
    route = route + (one[1] == want_route and before or 0)
  end
  return minute, route
end

local function take_polls(slots, want_route, polls, since, most, ahead)
  local minute, route, earlier = others_calls, 0, 0
  for _, one in ipairs(lacks_of_others(since)) do
    local earlier_polls = one[3] and one[2][POLLS] or 0
    minute = minute + earlier_polls
    route = route + (one[1] == want_route and one[2][CALLS] + earlier_polls or 0)
    earlier = earlier + earlier_polls
  end
  local count = math.min(polls, most)
  if state[CALLS_SINCE_POLL] >= CALLS_PER_POLL and earlier == 0 then
    return take(slots, math.min(count, 1), 0, 0, ahead)
  end
  return take(slots, count, minute, route, ahead)
end

local function count_calls(taken_calls, taken_polls, is_poll_waiting)
  for _, one in ipairs(lacks_of_others(0)) do
    is_poll_waiting = is_poll_waiting or one[2][POLLS] > 0
  end
  if taken_polls > 0 or not is_poll_waiting then
    state[CALLS_SINCE_POLL] = 0
  else
    state[CALLS_SINCE_POLL] = state[CALLS_SINCE_POLL] + taken_calls
  end
end

local function take_spare(slots, spare)
  local half = math.floor(slots.limit / 2)
  if alone then
    local most = math.min(math.max(half, 1), math.max(math.floor(minute_limit / 8), 1))
    take(slots, math.min(spare, most), 0, 0, AHEAD_ALONE)
    return
  end
  local free = math.floor(minute_limit * 3 / 4) - used
  local most = math.min(math.floor(half / active), math.floor(math.floor(free / 4) / active))
  take(slots, math.min(spare, most), 0, 0, 0)
end

local function add_lease(slots, number, route)
  local delays = slots.delays
  if #delays == 0 then
    return
  end
  local name = holder .. '/' .. string.format('%d', number)
  state[LEASES][name] = { route, #delays, now + delays[#delays] + valid + longest }
  local last
  for _, delay in ipairs(delays) do
    if last and last[2] == delay then
      last[3] = last[3] + 1
    else
      last = { number, delay, 1 }
      grants[#grants + 1] = last
    end
  end
end

local function lease(want)
  local number, route, route_limit, want_calls, want_polls, spare = unpack(want)
  if now < state[CLOSED_UNTIL] then
    denials[#denials + 1] = { route, state[CLOSED_UNTIL] - now }
    return
  end
  local lack = mine[LACKS][route]
  mine[LACKS][route] = nil
  local since = lack and lack[SINCE] or now
  local slots = {
    limit = route_limit > 0 and route_limit or UNLIMITED,
    ends = state[ROUTES][route] or {},
    delays = {},
    retry_after = RETRY_MIN,
  }
  slots.used = total(slots.ends)
  for _, other in pairs(state[LEASES]) do
    if other[ROUTE] == route then
      slots.used = slots.used + other[COUNT]
    end
  end
  local ahead = alone and AHEAD_ALONE or AHEAD
  local share = math.min(slots.limit, math.floor(minute_limit / 4))
  share = math.max(math.floor(share / (waiting + 1)), 1)
  local most = waiting > 0 and share or UNLIMITED
  local minute_before, route_before = before_call(route, since)
  local got_calls = take(slots, math.min(want_calls, most), minute_before, route_before, ahead)
  local got_polls = take_polls(slots, route, want_polls, since, most, ahead)
  count_calls(got_calls, got_polls, want_polls > got_polls)
  if got_calls < want_calls or got_polls < want_polls then
    mine[LACKS][route] = {
      (got_calls > 0 or got_polls > 0) and now or since,
      math.min(want_calls - got_calls, share),
      math.min(want_polls - got_polls, share),
      now + slots.retry_after + PATIENCE,
    }
    denials[#denials + 1] = { route, slots.retry_after }
  elseif waiting == 0 then
    take_spare(slots, spare)
  end
  add_lease(slots, number, route)
end

for _, want in ipairs(wants) do
  lease(want)
end

local refills, group = {}, 0
local size = math.ceil(total(state[ENDS]) / MAX_REFILLS)
for index, one in ipairs(state[ENDS]) do
  group = group + one[2]
  if group >= size or index == #state[ENDS] then
    refills[#refills + 1] = { one[1] + MINUTE - now, group }
    group = 0
  end
end

redis.call('SET', KEYS[1], cmsgpack.pack(state), 'PX', KEEP)
return cmsgpack.pack({
  state[GENERATION], used, valid, active, others_calls, others_waits, grants, denials, refills,
  others_projects,
})
