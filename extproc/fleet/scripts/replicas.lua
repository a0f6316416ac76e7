-- replicas lists who beats, and what they have applied: replica, applied, us since
-- the last beat, whether it knows the present history (1 or 0), ...; that history, and
-- for how many us there was it: 0 if there is none.
local now = clock()
local history = redis.call('HGET', KEYS[1], 'history') or ''
local all, list = redis.call('HGETALL', KEYS[4]), {}
for i = 1, #all, 2 do
  local applied, seen, known = string.match(all[i + 1], '^(%d+) (%d+) (.*)$')
  if applied then
    list[#list + 1] = all[i]
    list[#list + 1] = applied
    list[#list + 1] = int(math.max(now - tonumber(seen), 0))
    list[#list + 1] = known == history and '1' or '0'
  end
end
local began = tonumber(redis.call('HGET', KEYS[1], 'began') or int(now))
return { int(now), list, history, int(math.max(now - began, 0)) }
