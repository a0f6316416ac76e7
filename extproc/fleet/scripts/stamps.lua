-- The invalidations of the fleet lie in one slot:
--
--   KEYS[1]  hash: position (of the newest stamp), history, replication,
--            since (position at which the history began), began (when it did), hard
--            and soft (floors)
--   KEYS[2]  sorted set of stamps, each scored with its newest position
--   KEYS[3]  stream of stamps, for replicas to follow: ID position-0, fields prev
--            (the position before) and stamp
--   KEYS[4]  hash of replicas: "applied seen history"
--
-- A stamp begins with H (hard) or S (soft). Positions are Redis's time in us, or
-- one above the last. The set has every stamp that was not folded into a floor,
-- which covers all that was born before it; so whatever the stream has lost, the
-- set tells a replica what it missed.

-- How long in milliseconds all this outlives the last replica.
local keep_ms = 604800000

local function position()
  return tonumber(redis.call('HGET', KEYS[1], 'position') or '0')
end

-- append adds a stamp and returns its position.
local function append(stamp, now, limit, log)
  local prev = position()
  local at = math.max(prev + 1, now)
  redis.call('ZADD', KEYS[2], int(at), stamp)
  redis.call('HSET', KEYS[1], 'position', int(at))
  local entry = { 'XADD', KEYS[3], 'MAXLEN', '~', log, int(at) .. '-0', 'prev', int(prev), 'stamp', stamp }
  local added = redis.pcall(unpack(entry))
  if type(added) == 'table' and added.err then -- an old stream that is ahead of us
    redis.call('DEL', KEYS[3])
    redis.call(unpack(entry))
  end
  local over = redis.call('ZCARD', KEYS[2]) - limit
  if over > 0 then
    local folded = redis.call('ZPOPMIN', KEYS[2], over)
    for i = 1, #folded, 2 do
      local floor = string.sub(folded[i], 1, 1) == 'S' and 'soft' or 'hard'
      local had = tonumber(redis.call('HGET', KEYS[1], floor) or '0')
      redis.call('HSET', KEYS[1], floor, int(math.max(had, tonumber(folded[i + 1]))))
    end
  end
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], keep_ms) end
  return at
end

-- restore puts replicas on the list that another knew of before the list was lost:
-- who is cut off, and serves, must not be overlooked. others has "replica seen" of
-- each.
local function restore(others)
  for replica, seen in string.gmatch(others, '(%S+) (%d+)') do
    redis.call('HSETNX', KEYS[4], replica, '0 ' .. seen .. ' ')
  end
end

-- begin sees that there is a history of stamps, and that it is the one that this
-- Redis is in. Where stamps may have been lost - a failover, a restart, a flush,
-- a replica that knows more than we do - everything born before now becomes
-- stale by a stamp of its own. Returns the history.
local function begin(now, applied, history, everything, limit, log, others)
  local state = redis.call('HMGET', KEYS[1], 'position', 'history', 'replication', 'since')
  local here = replication()
  local lost = not state[1] or not state[2] or redis.call('ZCARD', KEYS[2]) == 0
    or here ~= '' and state[3] ~= here or applied > tonumber(state[1])
  if lost then
    local last = math.max(tonumber(state[1] or '0'), applied)
    redis.call('HSET', KEYS[1], 'position', int(last))
    local at = append(everything, now, limit, log)
    local name = int(at) .. here
    redis.call('HSET', KEYS[1], 'history', name, 'replication', here, 'since', int(at), 'began', int(now))
    restore(others)
    return name
  end
  if history ~= '' and history ~= state[2] then restore(others) end
  -- A replica that comes from another history with births this one has not
  -- outdated.
  if history ~= '' and history ~= state[2] and applied >= tonumber(state[4] or '0') then
    redis.call('HSET', KEYS[1], 'since', int(append(everything, now, limit, log)))
  end
  return state[2]
end
