-- acquire asks for one variant of a resource: for the answer, or else for the
-- right to fetch it. With an empty owner it only looks.
--
-- KEYS: 1 record of the resource  2 lease of the variant
-- ARGV: 1 variant  2 names of Vary the caller knows  3 token above which an answer
--       is news to it  4 owner, or empty  5 life of a lease in us
--       6 most bytes of a head  7 of a chunk
--       8 token of the fetch that was waited for, or 0: its answer is good even
--         if it came stale
--       9 position that the caller has applied: the birth of its fetch
--       10 position of the newest invalidation of the resource that it knows: a
--          fetch that was born before is of no use to it
--
-- Returns the time and one of:
--   vary NAMES               the resource varies by other fields: ask again
--   found VARIANT RECORD HEAD CHUNK
--   apart                    the last answer could not be shared: everybody fetches
--   held TOKEN OWNER US      somebody fetches, and has so many us left
--   granted TOKEN            the lease is the caller's
--   free FAILED              (looking) nobody fetches; the token of the last fetch
--                            if it failed
local now = clock()
local variant, names, above, owner = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local known = redis.call('HMGET', KEYS[1], 'vary', 'last', 'v:' .. variant)
if known[1] and known[1] ~= names then return { int(now), 'vary', known[1] } end

local r = record(known[3])
if r and r.token > above and r.expires > now then
  local waited = tonumber(ARGV[8])
  local good = r.fresh > now or waited > 0 and r.token >= waited and r.fresh > 0
  local key = KEYS[1] .. ':v:' .. variant
  local size = good and redis.call('STRLEN', key) or 0
  if size > 0 and size <= tonumber(ARGV[6]) then
    local chunk = ''
    if r.chunks == 1 then
      local body = chunk_key(r.body, 0)
      if redis.call('STRLEN', body) <= tonumber(ARGV[7]) then
        chunk = redis.call('GET', body) or ''
      end
    end
    return { int(now), 'found', variant, known[3], redis.call('GET', key), chunk }
  end
end

local lease = redis.call('HMGET', KEYS[2], 'token', 'owner', 'until', 'mark', 'failed', 'birth')
if lease[4] and tonumber(lease[4]) > now then return { int(now), 'apart' } end
if lease[2] and tonumber(lease[3]) > now and tonumber(lease[6] or '0') >= tonumber(ARGV[10]) then
  if lease[2] == owner then return { int(now), 'granted', lease[1] } end
  -- Whoever ends the lease publishes only if somebody waits. If memory is full the
  -- flag cannot be set; waiters then find out by themselves.
  redis.pcall('HSET', KEYS[2], 'waiting', 1)
  return { int(now), 'held', lease[1], lease[2], int(tonumber(lease[3]) - now) }
end
if owner == '' then return { int(now), 'free', lease[5] or '0' } end

-- Tokens grow with every grant, whatever became of the record in between: no
-- token was ever given out above the time.
local last = math.max(tonumber(known[2] or '0'), tonumber(lease[1] or '0'))
local token, life = math.max(last + 1, now), tonumber(ARGV[5])
redis.call('HSET', KEYS[1], 'last', int(token), 'vary', names)
extend(KEYS[1], fence_ms)
redis.call('HSET', KEYS[2], 'token', int(token), 'owner', owner, 'until', int(now + life), 'birth', ARGV[9])
redis.call('HDEL', KEYS[2], 'mark', 'failed')
redis.call('PEXPIRE', KEYS[2], int(fence_ms + life / 1000))
return { int(now), 'granted', int(token) }
