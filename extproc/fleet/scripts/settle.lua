-- settle ends a lease without an answer, if it is still the caller's, and wakes
-- who waits.
--
-- KEYS: 1 record of the resource  2 lease
-- ARGV: 1 token  2 owner  3 how: r given back, u cannot be shared, f failed
--       4 how long in us a lease that cannot be shared is not given out
--       5 channel  6 what to tell
--
-- Returns the time and settled or lost.
local now = clock()
local lease = redis.call('HMGET', KEYS[2], 'token', 'owner')
if lease[1] ~= ARGV[1] or lease[2] ~= ARGV[2] then return { int(now), 'lost' } end
local mark = tonumber(ARGV[4])
if ARGV[3] == 'u' then
  redis.pcall('HSET', KEYS[2], 'mark', int(now + mark))
elseif ARGV[3] == 'f' then
  redis.pcall('HSET', KEYS[2], 'failed', ARGV[1])
end
redis.call('HDEL', KEYS[2], 'owner', 'until')
redis.call('PEXPIRE', KEYS[2], int(math.max(fence_ms, mark / 1000)))
if redis.call('HDEL', KEYS[2], 'waiting') == 1 then redis.pcall('PUBLISH', ARGV[5], ARGV[6]) end
return { int(now), 'settled' }
