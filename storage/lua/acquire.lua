#!lua flags=allow-oom
-- acquire.lua - take a lock that nobody has; beside the data also draw the next fencing token, in the same step.
-- KEYS: 1 lock  2 fence (left out on servers that hold nothing but locks)
-- ARGV: 1 token  2 lease (ms)  3 the fencing token must be greater than this
-- Reply: fencing token (1 without fence); or minus the milliseconds that somebody else has left
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    local left = redis.call('PTTL', KEYS[1])
    if left > tonumber(ARGV[2]) then -- Redis's clock was set back: who is alive prolongs it, who is dead must not have more
        left = tonumber(ARGV[2])
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
    end
    if left < 2 then left = left == -1 and 1000 or 2 end -- -1: somebody set it without an expiry; look again
    return -left
end
if not KEYS[2] then return 1 end
local fence = redis.call('INCR', KEYS[2])
if fence <= tonumber(ARGV[3]) then -- it went back with lost data, and a partition has seen more
    fence = tonumber(ARGV[3]) + 1
    redis.call('SET', KEYS[2], string.format('%.0f', fence))
end
return fence
