-- replication returns the ID of the replication history that this Redis is in; it
-- is another after every failover and restart. Empty if it may not be asked.
local function replication()
  local info = redis.pcall('INFO', 'replication')
  return type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
end
