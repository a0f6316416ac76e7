-- update replaces all variants of a resource, unless they changed since they were
-- read. Bodies that are not used again were written before.
--
-- KEYS: 1 record of the resource
-- ARGV: 1 generation that was read  2 the writer's idea of the time
--       3 lowest new token, or 0  4 names of Vary of the newest variant
--       then, for each variant that is to be: variant, token, fresh, expires,
--       birth, name of the body, chunks, head, chunk; an empty head leaves the
--       variant as it is, an empty chunk its body
--
-- Returns the time and: updated, changed (read again), clock, body (see commit),
-- or token and a token that is above the last.
local now = clock()
local claimed = tonumber(ARGV[2])
if claimed > now + 20000 or claimed < now - 500000 then
  return { int(now), 'clock' }
end
local state = redis.call('HMGET', KEYS[1], 'g', 'last')
if state[1] ~= ARGV[1] then return { int(now), 'changed' } end
local last, lowest = tonumber(state[2] or '0'), tonumber(ARGV[3])
if lowest > 0 and lowest <= last then
  return { int(now), 'token', int(math.max(last + 1, now)) }
end

local width, wanted = 9, {}
for at = 5, #ARGV, width do
  local text = table.concat({ ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6] }, ' ')
  local w = { name = ARGV[at], text = text, r = record(text), head = ARGV[at + 7], chunk = ARGV[at + 8] }
  if w.r.expires > now then
    wanted[#wanted + 1] = w
    if w.head ~= '' and w.chunk == '' then
      for i = 0, w.r.chunks - 1 do
        if redis.call('EXISTS', chunk_key(w.r.body, i)) == 0 then return { int(now), 'body' } end
      end
    end
  end
end

local stays, bodies = {}, {}
for _, w in ipairs(wanted) do
  stays[w.name] = true
  bodies[w.r.body] = true
end
for _, v in ipairs(variants()) do
  if not stays[v.name] then redis.call('DEL', KEYS[1] .. ':v:' .. v.name) end
  if v.r and not bodies[v.r.body] then drop_body(v.r) end
  if not stays[v.name] then redis.call('HDEL', KEYS[1], 'v:' .. v.name) end
end

for _, w in ipairs(wanted) do
  if w.head ~= '' then
    local life = live_for(w.r.expires, now)
    redis.call('SET', KEYS[1] .. ':v:' .. w.name, w.head, 'PX', int(life))
    if w.chunk ~= '' then
      redis.call('SET', chunk_key(w.r.body, 0), w.chunk, 'PX', int(life))
    else
      for i = 0, w.r.chunks - 1 do extend(chunk_key(w.r.body, i), life) end
    end
    redis.call('HSET', KEYS[1], 'v:' .. w.name, w.text)
    last = math.max(last, w.r.token)
  end
end
redis.call('HSET', KEYS[1], 'last', int(last))
if #wanted > 0 then redis.call('HSET', KEYS[1], 'vary', ARGV[4]) end
changed(wanted, now)
return { int(now), 'updated' }
