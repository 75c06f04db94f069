#!lua flags=allow-oom
-- release.lua - give a lock back, if the caller still holds it.
-- KEYS: 1 lock  2 counter of how often the lock was given back (may be left out)    ARGV: 1 token
-- Reply: 1: the lock is given back; 0: somebody else holds the lock; -1: nobody holds the lock
local holder = redis.call('GET', KEYS[1])
if not holder then return -1 end
if holder ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if KEYS[2] then redis.call('INCR', KEYS[2]) end
return 1
