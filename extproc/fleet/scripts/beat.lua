-- beat says that a replica is alive and what it has applied, and returns what it
-- has not: a page of stamps from the set, oldest first.
--
-- ARGV: 1 replica  2 position it has applied  3 history it knows, or empty
--       4 the stamp that makes everything stale  5 most stamps  6 length of the
--       stream  7 stamps of a page  8 position to read the set from, or empty
--       9 us after which a silent replica is forgotten  10 the replicas it knows
--
-- Returns the time, history, position, hard floor, soft floor, the page (position,
-- stamp, ...) and the other replicas (replica, seen, ...). A page that is not full is the last: the replica then
-- knows everything up to the position.
local now, applied = clock(), tonumber(ARGV[2])
local history = begin(now, applied, ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[10])
local state = redis.call('HMGET', KEYS[1], 'position', 'hard', 'soft')

local from = ARGV[8]
if history ~= ARGV[3] and from == '' then from = '0' end
if from == '' then from = ARGV[2] end
local page = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[7])
local list = {}
for i = 1, #page, 2 do
  list[#list + 1] = int(tonumber(page[i + 1]))
  list[#list + 1] = page[i]
end

redis.call('HSET', KEYS[4], ARGV[1], ARGV[2] .. ' ' .. int(now) .. ' ' .. ARGV[3])
local all = redis.call('HGETALL', KEYS[4])
local others = {}
for i = 1, #all, 2 do
  local seen = tonumber(string.match(all[i + 1], '^%d+ (%d+)') or '0')
  if now - seen > tonumber(ARGV[9]) then
    redis.call('HDEL', KEYS[4], all[i])
  elseif all[i] ~= ARGV[1] then
    others[#others + 1] = all[i]
    others[#others + 1] = int(seen)
  end
end
for i = 1, 4 do redis.call('PEXPIRE', KEYS[i], keep_ms) end
return { int(now), history, state[1], state[2] or '0', state[3] or '0', list, others }
