#!lua flags=allow-oom
-- expire.lua - set the expiry of parts of a complete bucket, in one chunk of a pass's last phase.
-- KEYS: 1 state  2 pass  3 open  4.. keys that get an expiry
-- ARGV: 1 cfg  2 pass  3 cur expected  4 fencing token  5 cur to set  6 '1': this chunk ends the pass  7 number of keys
--       8.. an expiry (ms) for each key, then members that open loses
-- Reply: 1: done; 0: nothing was done, because the settings, the pass or its cursor is not the expected one, or the partition has
--        seen a greater token
local call = redis.call
local is = call('HMGET', KEYS[2], 'pass', 'cur', 'ftok')
if call('HGET', KEYS[1], 'cfg') ~= ARGV[1] or is[1] ~= ARGV[2] or is[2] ~= ARGV[3] then return 0 end
if tonumber(ARGV[4]) < tonumber(is[3] or '0') then return 0 end
local n = tonumber(ARGV[7])
for i = 1, n do
    call('PEXPIREAT', KEYS[3 + i], ARGV[7 + i], 'NX')
end
for i = 8 + n, #ARGV do
    call('SREM', KEYS[3], ARGV[i])
end
if ARGV[6] == '1' then
    call('HDEL', KEYS[2], 'pass', 'cur')
else
    call('HSET', KEYS[2], 'cur', ARGV[5])
end
return 1
