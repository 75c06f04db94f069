#!lua flags=allow-oom
-- release.lua - give a lock back, if the caller still holds it.
-- KEYS: 1 lock  2 who had it last (may be left out)    ARGV: 1 token  2 how long that is kept (ms)
-- Reply: 1 released, 0 somebody else holds it, -1 nobody does
local holder = redis.call('GET', KEYS[1])
if not holder then return -1 end
if holder ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if KEYS[2] then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2]) end
return 1
