-- stamp adds invalidations.
--
-- ARGV: 1 position the caller has applied  2 history it knows
--       3 the stamp that makes everything stale  4 most stamps  5 length of the
--       stream  6 most entries to return  7 the replicas it knows  8... stamps
--
-- Returns the time, history, position of the last, and what the stream has after
-- what the caller has applied: position, prev, stamp, ...
local now, limit = clock(), tonumber(ARGV[4])
local history = begin(now, tonumber(ARGV[1]), ARGV[2], ARGV[3], limit, ARGV[5], ARGV[7])
local at = 0
for i = 8, #ARGV do at = append(ARGV[i], now, limit, ARGV[5]) end

local list = {}
for _, e in ipairs(redis.call('XRANGE', KEYS[3], int(tonumber(ARGV[1]) + 1) .. '-0', '+', 'COUNT', ARGV[6])) do
  list[#list + 1] = string.match(e[1], '^%d+')
  for i = 1, #e[2], 2 do
    if e[2][i] == 'prev' then list[#list + 1] = e[2][i + 1] end
  end
  for i = 1, #e[2], 2 do
    if e[2][i] == 'stamp' then list[#list + 1] = e[2][i + 1] end
  end
end
return { int(now), history, int(at), list }
