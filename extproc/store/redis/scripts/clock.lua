-- clock returns Redis's own time in microseconds since 1970. It is the only
-- clock that replicas have in common. A double holds it exactly until 2255.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- int writes a whole number out in full; tostring would round it.
local function int(n)
  return string.format('%.0f', n)
end
