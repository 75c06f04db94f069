#!lua flags=allow-oom
-- expire.lua - one chunk of a pass's last phase: set the expiry of parts of a complete bucket.
-- KEYS: 1 state  2 pass  3 open  4.. keys that get an expiry
-- ARGV: 1 cfg  2 pass  3 cur expected  4 fencing token  5 cur to set  6 '1': this chunk ends the pass  7 number of keys
--       then an expiry (ms) per key, then members to take out of open
-- Reply: 1 done, 0 not: the pass is another one, or is elsewhere
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
