-- renew makes a lease live on, if it is still the caller's.
--
-- KEYS: 1 record of the resource  2 lease
-- ARGV: 1 token  2 owner  3 life in us
--
-- Returns the time and kept or lost.
local now = clock()
local lease = redis.call('HMGET', KEYS[2], 'token', 'owner')
if lease[1] ~= ARGV[1] or lease[2] ~= ARGV[2] then return { int(now), 'lost' } end
local life = tonumber(ARGV[3])
redis.call('HSET', KEYS[2], 'until', int(now + life))
redis.call('PEXPIRE', KEYS[2], int(fence_ms + life / 1000))
extend(KEYS[1], fence_ms)
return { int(now), 'kept' }
