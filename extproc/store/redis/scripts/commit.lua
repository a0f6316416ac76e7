-- commit stores one variant: its head, and its body if that is one chunk; larger
-- bodies were written before, where nobody finds them until now.
--
-- KEYS: 1 record of the resource  2 lease it was fetched under, or of the variant
--       3 lease of the variant    4 lease of the resource while its Vary is unknown
-- ARGV: 1 variant  2 names of Vary  3 token  4 the writer's idea of the time
--       5 fresh until  6 of use until  7 birth  8 name of the body  9 chunks
--       10 most variants  11 head  12 chunk, or empty  13 owner of the lease, or empty
--       14 channel to wake waiters on  15 what to tell them  16 what if the answer
--       is of no use to them
--
-- Returns the time and what became of it:
--   stored
--   expired   of no more use: the variant is gone
--   outlived  there is an answer whose fetch saw a later invalidation: kept
--   fenced    a newer token was given out: nothing was done
--   clock     the writer's idea of the time is off; what it wrote would have a
--             wrong age: nothing was done
--   token     (without a lease) not above the last: nothing was done; the third
--             value is one that is
--   body      the body that should be there is not: nothing was done
local now = clock()
local variant, token, expires = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[6])
local body, chunks, owner = ARGV[8], tonumber(ARGV[9]), ARGV[13]

local claimed = tonumber(ARGV[4])
if claimed > now + 20000 or claimed < now - 500000 then
  return { int(now), 'clock' }
end

local last = tonumber(redis.call('HGET', KEYS[1], 'last') or '0')
local old = record(redis.call('HGET', KEYS[1], 'v:' .. variant))
if owner ~= '' then
  local lease = redis.call('HMGET', KEYS[2], 'token', 'done')
  if lease[1] and tonumber(lease[1]) > token or lease[2] == ARGV[3] or old and old.token >= token then
    return { int(now), 'fenced' }
  end
elseif token <= last then
  return { int(now), 'token', int(math.max(last + 1, now)) }
end

-- over ends the lease and wakes who waits for it. A lease that somebody else has
-- by now is not touched: its token is another.
local function over(message)
  local waiting = false
  for i = 2, 4 do
    if redis.call('HDEL', KEYS[i], 'waiting') == 1 then waiting = true end
  end
  if owner ~= '' then
    redis.call('HSET', KEYS[2], 'token', ARGV[3], 'done', ARGV[3])
    redis.call('HDEL', KEYS[2], 'owner', 'until', 'mark', 'failed')
    redis.call('PEXPIRE', KEYS[2], fence_ms)
  end
  if waiting then redis.pcall('PUBLISH', ARGV[14], message) end
end

if old and old.birth > ARGV[7] then
  over(ARGV[15])
  return { int(now), 'outlived' }
end

local life = live_for(expires, now)
if expires > now and ARGV[12] == '' then
  for i = 0, chunks - 1 do
    if redis.call('EXISTS', chunk_key(body, i)) == 0 then return { int(now), 'body' } end
  end
end

redis.call('HSET', KEYS[1], 'last', int(math.max(last, token)))
local kept, room = {}, tonumber(ARGV[10])
if expires > now then room = room - 1 end
for _, v in ipairs(variants()) do
  if v.name == variant then
    if v.r and v.r.body ~= body then drop_body(v.r) end
  elseif not v.r or v.r.expires <= now or #kept >= room then
    drop(v.name, v.r)
  else
    kept[#kept + 1] = v
  end
end

if expires <= now then
  drop(variant, nil)
  changed(kept, now)
  over(ARGV[16])
  return { int(now), 'expired' }
end

redis.call('SET', KEYS[1] .. ':v:' .. variant, ARGV[11], 'PX', int(life))
if ARGV[12] ~= '' then
  redis.call('SET', chunk_key(body, 0), ARGV[12], 'PX', int(life))
else
  for i = 0, chunks - 1 do extend(chunk_key(body, i), life) end
end
local text = table.concat({ ARGV[3], ARGV[5], ARGV[6], ARGV[7], body, ARGV[9] }, ' ')
redis.call('HSET', KEYS[1], 'v:' .. variant, text)
if not kept[1] or kept[1].r.token < token then
  redis.call('HSET', KEYS[1], 'vary', ARGV[2])
end
kept[#kept + 1] = { r = record(text) }
changed(kept, now)
over(ARGV[15])
return { int(now), 'stored' }
