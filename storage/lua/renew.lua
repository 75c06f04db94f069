#!lua flags=allow-oom
-- renew.lua - prolong a lock that the caller still holds: the lock lasts for a whole lease from now on.
-- KEYS: 1 lock  2 wish, the key that asks for passes (may be left out)    ARGV: 1 token  2 lease (ms)
-- Reply: 1: the lock is prolonged; 2: the same, and somebody asks for passes; 0: somebody else holds the lock; -1: nobody does
local holder = redis.call('GET', KEYS[1])
if not holder then return -1 end
if holder ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then return 2 end
return 1
