-- read returns the variants of a resource: their records and heads, and the body
-- where there is one variant with one chunk. It changes nothing.
--
-- KEYS: 1 record of the resource
-- ARGV: 1 most variants  2 most bytes of one head  3 of all heads  4 of one chunk
--
-- Returns time, generation, last token, {variant, record, head, ...}, chunk.
-- What is over the bounds is left out, so that the reader allocates no more than
-- it has to expect.
local now = clock()
local fields = redis.call('HLEN', KEYS[1])
if fields == 0 or fields > tonumber(ARGV[1]) + 8 then
  return { int(now), '0', '0', {}, '' }
end

local list, room, one = {}, tonumber(ARGV[3]), nil
for _, v in ipairs(variants()) do
  local key = KEYS[1] .. ':v:' .. v.name
  local size = redis.call('STRLEN', key)
  if v.r and size > 0 and size <= tonumber(ARGV[2]) and size <= room and #v.text < 200 then
    room = room - size
    one = #list == 0 and v or nil
    list[#list + 1] = v.name
    list[#list + 1] = v.text
    list[#list + 1] = redis.call('GET', key)
  end
end

local chunk = ''
if one and one.r.chunks == 1 then
  local key = chunk_key(one.r.body, 0)
  if redis.call('STRLEN', key) <= tonumber(ARGV[4]) then
    chunk = redis.call('GET', key) or ''
  end
end
local heads = redis.call('HMGET', KEYS[1], 'g', 'last')
return { int(now), heads[1] or '0', heads[2] or '0', list, chunk }
