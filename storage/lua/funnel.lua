#!lua
-- funnel.lua - decide rate limits by GCRA for several keys at once, each key on its own.  storage/limit/limiter.c encodes
-- the arguments; storage/job/limit.h explains the words.
--
-- KEYS: one for each job
-- ARGV: six for each run of jobs that ask for the same:
--       number of jobs  cost of a request (units)  units paid back a microsecond  capacity  need  want
-- Reply: {seconds, microseconds of Redis's clock, then four numbers for each job:
--       granted (-1: denied)  remaining  retry (us; -1: never)  reset (us)}
--
-- What a job takes of a limit that has room for n requests:
--       need < 0       the job gives -need requests back
--       n < need       the job takes nothing
--       n >= need      the job takes want, or n if n is less
--
-- A key holds four doubles: the time when it was written (us), the debt then (units), and the cost and rate by which
-- the debt was counted.  All are whole numbers that a double holds exactly (see limit_check()), so nothing is ever
-- rounded in anybody's favour.  If the limit was changed, the debt counted in requests stays.  If Redis's clock went back, the
-- debt is paid back from the new time on.
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local reply = {t[1], t[2]}
local left_in_run, a = 0, -5 -- a: index in ARGV at which the run of the job at hand begins
local cost, rate, capacity, need, want, full
for i = 1, #KEYS do
    if left_in_run == 0 then
        a = a + 6
        left_in_run, cost, rate = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
        capacity, need, want = tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])
        full = capacity * cost
    end
    left_in_run = left_in_run - 1
    local debt, granted, retry, moved = 0, -1, 0, false
    local is = call('GET', KEYS[i])
    if is and #is == 32 then
        local at, cost0, rate0
        at, debt, cost0, rate0 = struct.unpack('<dddd', is)
        if now > at then debt = max(0, debt - (now - at) * rate0) end
        moved = now < at
        if cost0 ~= cost or rate0 ~= rate then
            debt, moved = min(full, ceil(debt / cost0 * cost)), true
        end
    end
    local left = max(0, floor((full - debt) / cost))
    if need < 0 then
        debt, granted = max(0, debt + need * cost), need
    elseif need <= left then
        granted = min(want, left)
        debt = debt + granted * cost
    elseif need > capacity then
        retry = -1
    else
        retry = ceil((debt + need * cost - full) / rate)
    end
    local reset = ceil(debt / rate)
    if granted ~= 0 and granted ~= -1 or need < 0 or moved then
        if debt > 0 then
            call('SET', KEYS[i], struct.pack('<dddd', now, debt, cost, rate), 'PX', ceil(reset / 1000) + 1)
        elseif is then
            call('DEL', KEYS[i])
        end
    end
    local r = 4 * (i - 1) + 2
    reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = granted, max(0, floor((full - debt) / cost)), retry, reset
end
return reply
