#!lua flags=allow-oom
-- acquire.lua - take a lock that nobody holds, and draw the next fencing token in the same step.
-- KEYS: 1 lock  2 fence; only the server with the data has one
-- ARGV: 1 token  2 lease (ms)  3 the fencing token must be greater than this
-- Reply: the fencing token; 1 where there is no fence.  If somebody holds the lock: minus the milliseconds for which the
--        lock still lasts
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    local left = redis.call('PTTL', KEYS[1])
    if left > tonumber(ARGV[2]) then -- Redis's clock was set back: a dead holder must not get more time
        left = tonumber(ARGV[2])
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
    end
    if left < 2 then left = left == -1 and 1000 or 2 end -- -1: the lock has no expiry, and the caller asks again later
    return -left
end
if not KEYS[2] then return 1 end
local fence = redis.call('INCR', KEYS[2])
if fence <= tonumber(ARGV[3]) then -- Redis has lost data: a partition has seen a greater token
    fence = tonumber(ARGV[3]) + 1
    redis.call('SET', KEYS[2], string.format('%.0f', fence))
end
return fence
