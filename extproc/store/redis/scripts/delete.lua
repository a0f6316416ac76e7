-- delete removes all variants of a resource. The record stays for a while: it
-- remembers the last token.
--
-- KEYS: 1 record of the resource
local now = clock()
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, v in ipairs(variants()) do drop(v.name, v.r) end
  redis.call('HDEL', KEYS[1], 'vary')
  changed({}, now)
end
return { int(now) }
