#!lua flags=allow-oom
-- advance.lua - close a complete bucket for readers.  The parts of the bucket get an expiry only afterwards.
-- KEYS: 1 state  2 pass    ARGV: 1 cfg  2 pass  3 cur expected  4 fencing token  5 st expected  6 st  7 ver
-- Reply: 1: done; 0: nothing was done, because the settings, st, the pass or its cursor is not the expected one, or the
--        partition has seen a greater token
local is = redis.call('HMGET', KEYS[1], 'cfg', 'st')
local open = redis.call('HMGET', KEYS[2], 'pass', 'cur', 'ftok')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[5] or open[1] ~= ARGV[2] or open[2] ~= ARGV[3] then return 0 end
if tonumber(ARGV[4]) < tonumber(open[3] or '0') then return 0 end
redis.call('HSET', KEYS[1], 'st', ARGV[6], 'ver', ARGV[7])
redis.call('HSET', KEYS[2], 'cur', 'x0')
return 1
