#!lua flags=allow-oom
-- advance.lua - close a complete bucket for readers.  No part of it gets an expiry before this.
-- KEYS: 1 rolled    ARGV: 1 cfg  2 pass  3 cur expected  4 fencing token  5 st expected  6 st  7 ver
-- Reply: 1 done, 0 not: the pass is another one, or is elsewhere
local is = redis.call('HMGET', KEYS[1], 'cfg', 'pass', 'cur', 'ftok', 'st')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[2] or is[3] ~= ARGV[3] or is[5] ~= ARGV[5] then return 0 end
if tonumber(ARGV[4]) < tonumber(is[4] or '0') then return 0 end
redis.call('HSET', KEYS[1], 'st', ARGV[6], 'ver', ARGV[7], 'cur', 'x0')
return 1
