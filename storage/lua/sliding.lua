#!lua
-- sliding.lua - decide rate limits by an exact log of the last period, for several keys at once, each key on its own.
-- storage/limit/limiter.c encodes the arguments; storage/job/limit.h explains the words.
--
-- KEYS: one for each job
-- ARGV: three for each job: limit  period (us)  cost
-- Reply: {seconds, microseconds of Redis's clock, then four numbers for each job:
--       granted (-1: denied)  remaining  retry (us; -1: never)  reset (us)}
--
-- A key is a zset with one entry for each call that was allowed.  Its score is the time of the call.  Its member is the
-- running total in 16 digits, a ':' and the call's cost.  Totals only grow, so members are unique even within a
-- microsecond, and the sum over the window is the difference of two totals.  The window is (now - period, now].  The
-- newest entry that has left the window stays, because the sum is counted from its total.  The entries before it are
-- removed, a thousand a call at most, so that no call takes long.
--
-- Scores never fall, as totals never do.  So if Redis's clock was set back, the log's time stands still until the clock
-- is there again.  If the clock was set back by more than the period, all calls of the window become one call of now
-- instead.  In either case nothing is forgotten too early, and nobody waits for longer than two periods.
local call, max, min, ceil, floor = redis.call, math.max, math.min, math.ceil, math.floor
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local reply = {t[1], t[2]}

local function total_of(member) return tonumber(string.sub(member, 1, 16)) end

-- The time of the first entry, from rank `low` on, whose total is at least `target`.
local function time_of(key, low, target)
    local high = call('ZCARD', key) - 1
    local at = low -- looked at first, because most calls wait for the oldest entry
    while true do
        local entry = call('ZRANGE', key, at, at, 'WITHSCORES')
        if total_of(entry[1]) >= target then
            if at == low then return tonumber(entry[2]) end
            high = at
        else
            low = at + 1
        end
        at = floor((low + high) / 2)
    end
end

for i = 1, #KEYS do
    local a, key = 3 * (i - 1), KEYS[i]
    local limit, period, cost = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
    local at, total, base, newest, oldest = now, 0, 0, 0, 0
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    if last[1] then
        total, newest = total_of(last[1]), tonumber(last[2])
        at = max(now, newest)
        local gone = call('ZREVRANGEBYSCORE', key, at - period, '-inf', 'LIMIT', 0, 1)
        if gone[1] then
            base, oldest = total_of(gone[1]), call('ZRANK', key, gone[1]) + 1
        else
            local first = call('ZRANGE', key, 0, 0)[1]
            base = total_of(first) - tonumber(string.sub(first, 18))
        end
    end
    local used, granted, retry = total - base, -1, 0
    if newest > now + period then
        -- The key is not deleted first: while its slot is moved to another server, Redis would refuse to make the key again.
        local all = string.format('%016.0f:%.0f', total, used)
        at, newest, oldest = now, now, 0
        call('ZREMRANGEBYRANK', key, 0, -2)
        call('ZADD', key, now, all)
        if all ~= last[1] then call('ZREM', key, last[1]) end
        call('PEXPIRE', key, ceil(period / 1000) + 1)
    end
    if cost > limit then
        retry = -1
    elseif cost == 0 then
        granted = 0
    elseif used + cost <= limit then
        granted, used, newest = cost, used + cost, at
        if oldest > 1 then call('ZREMRANGEBYRANK', key, 0, min(oldest - 1, 1000) - 1) end
        call('ZADD', key, at, string.format('%016.0f:%.0f', total + cost, cost))
        call('PEXPIRE', key, ceil((at + period - now) / 1000) + 1)
    else
        retry = time_of(key, oldest, total + cost - limit) + period - now
    end
    local r = 4 * (i - 1) + 2
    reply[r + 1], reply[r + 2], reply[r + 3] = granted, max(0, limit - used), retry
    reply[r + 4] = used > 0 and newest + period - now or 0
end
return reply
