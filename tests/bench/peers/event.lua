-- event.lua - one event in Redis, for webdis: KEYS uv page, uv site, ip page, ip site, pv; ARGV user, ip, page
redis.call('PFADD', KEYS[1], ARGV[1])
redis.call('PFADD', KEYS[2], ARGV[1])
redis.call('PFADD', KEYS[3], ARGV[2])
redis.call('PFADD', KEYS[4], ARGV[2])
redis.call('HINCRBY', KEYS[5], ARGV[3], 1)
return 1
