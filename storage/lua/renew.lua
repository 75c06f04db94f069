#!lua flags=allow-oom
-- renew.lua - prolong a lock that the caller still holds: it lasts for a whole lease from now on.
-- KEYS: 1 lock  2 wish (may be left out)    ARGV: 1 token  2 lease (ms)
-- Reply: 1 prolonged, 2 prolonged and somebody asks for a pass, 0 somebody else holds it, -1 nobody does
local holder = redis.call('GET', KEYS[1])
if not holder then return -1 end
if holder ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then return 2 end
return 1
