#!lua flags=allow-oom
-- renew.lua - prolong a lock that is still mine: to the whole lease from now on, whatever was left.
-- KEYS: 1 lock  2 wish (may be left out)    ARGV: 1 token  2 lease (ms)
-- Reply: 1 prolonged, 2 prolonged and somebody wishes a pass; 0 somebody else's, -1 gone
local holder = redis.call('GET', KEYS[1])
if not holder then return -1 end
if holder ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then return 2 end
return 1
