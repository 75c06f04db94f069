#!lua flags=allow-oom
-- renew.lua - prolong a lock that is still mine.
-- KEYS: 1 lock    ARGV: 1 token  2 lease (ms)
-- Reply: 1 prolonged, 0 not mine any more
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
