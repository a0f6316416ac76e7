-- leave takes a replica off the list: it ends, and serves nothing any more.
redis.call('HDEL', KEYS[4], ARGV[1])
return { int(clock()) }
