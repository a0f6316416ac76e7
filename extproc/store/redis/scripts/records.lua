-- The record of a resource, KEYS[1] in every script, is a hash:
--
--   g      generation: counts changes of the variants
--   last   the last fencing token given out
--   vary   names of Vary of the newest variant, separated by commas
--   v:V    of variant V: token fresh expires birth body chunks
--
-- fresh and expires are instants of this Redis in microseconds; birth has 20
-- digits, so that two compare as strings (a double does not hold it); body is
-- the number that the chunks of the body lie under.

-- How long in milliseconds a record outlives its last variant: the memory of
-- tokens that fences off an owner who slept.
local fence_ms = 60000

-- How long in milliseconds replaced chunks stay for readers who have begun.
local linger_ms = 2000

-- No record names more chunks than the largest object has.
local max_chunks = 16384

local function record(text)
  if not text then return nil end
  local token, fresh, expires, birth, body, chunks =
    string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not token then return nil end
  return {
    token = tonumber(token), fresh = tonumber(fresh), expires = tonumber(expires),
    birth = birth, body = body, chunks = math.min(tonumber(chunks), max_chunks),
  }
end

local function chunk_key(body, i)
  return KEYS[1] .. ':b:' .. body .. ':' .. i
end

-- live_for says how long in milliseconds something of use until expires is kept:
-- to the end, never less.
local function live_for(expires, now)
  return math.max(math.ceil((expires - now) / 1000) + 1, 1)
end

-- extend makes a key live for at least ms from now.
local function extend(key, ms)
  if redis.call('PTTL', key) < ms then
    redis.call('PEXPIRE', key, int(ms))
  end
end

-- drop_body lets the chunks of a body go; who reads them now can finish.
local function drop_body(r)
  for i = 0, r.chunks - 1 do
    redis.call('PEXPIRE', chunk_key(r.body, i), linger_ms)
  end
end

-- drop takes variant v with record r out of the resource.
local function drop(v, r)
  redis.call('HDEL', KEYS[1], 'v:' .. v)
  redis.call('DEL', KEYS[1] .. ':v:' .. v)
  if r then drop_body(r) end
end

-- variants lists the variants of the resource, newest first.
local function variants()
  local all = redis.call('HGETALL', KEYS[1])
  local out = {}
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'v:' then
      out[#out + 1] = { name = string.sub(all[i], 3), text = all[i + 1], r = record(all[i + 1]) }
    end
  end
  table.sort(out, function(a, b)
    return (a.r and a.r.token or 0) > (b.r and b.r.token or 0)
  end)
  return out
end

-- changed notes a change of the variants. kept are those there are now.
local function changed(kept, now)
  local ms = fence_ms
  for _, v in ipairs(kept) do
    ms = math.max(ms, live_for(v.r.expires, now))
  end
  redis.call('HINCRBY', KEYS[1], 'g', 1)
  redis.call('PEXPIRE', KEYS[1], int(ms))
end
