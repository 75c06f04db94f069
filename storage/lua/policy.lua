#!lua
-- policy.lua - decide rate limits of several parts, for several jobs at once.  The limits of one job are decided together:
-- all are charged, or none.  storage/limit/limit_script.c encodes the arguments; storage/job/limit.h explains the words.
--
-- KEYS: for each job the keys of its parts
-- ARGV: for each run of jobs that ask for the same:
--       number of jobs  requests to take (0: only look)  number of parts
--       then four words for each part: the limits come first, and behind them at most one penalty
--       'funnel'   capacity  cost of a request (units)  units paid back a microsecond
--       'sliding'  capacity  period (us)                0
--       'penalty'  refusals  within (us)                lasts (us)
-- Reply: {seconds, microseconds of Redis's clock, then five numbers for each job:
--       granted (-1: denied by a limit, -2: by the penalty)  remaining  retry (us; -1: never)  reset (us)
--       number of the strictest limit, from 0}
--
-- The strictest limit is the one with least left; of a job that is refused, the one to wait for longest.  The numbers
-- remaining, retry and reset are those of all parts together.
--
-- The key of a limit has the same form as where funnel.lua or sliding.lua decides the limit alone.  Those scripts take half
-- of the time, because they know of one limit and make neither functions nor tables.
local call, floor, ceil, max, min, huge = redis.call, math.floor, math.ceil, math.max, math.min, math.huge
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local reply = {t[1], t[2]}

-- Set a key that expires when `us` have passed.
local function set_for(key, value, us) call('SET', key, value, 'PX', ceil(us / 1000) + 1) end

-- By number from 1, the limits of the run at hand.
local look, wait, take, capacity, cost, rate, period = {}, {}, {}, {}, {}, {}, {}
-- By number, the value of each limit's key: look() sets these, and take() changes them.  The second line is of sliding limits:
-- the log's time, its running total, the total before the window, the newest entry's time, the rank of the window's first entry.
local is, debt, moved = {}, {}, {}
local at, total, base, newest, oldest = {}, {}, {}, {}, {}

-- Read the key of funnel limit p.  Returns how many requests there is room for.
local function funnel_look(p, key)
    local owed, changed, value = 0, false, call('GET', key)
    if value and #value == 32 then
        local written, owed0, cost0, rate0 = struct.unpack('<dddd', value)
        owed, changed = owed0, now < written
        if now > written then owed = max(0, owed - (now - written) * rate0) end
        if cost0 ~= cost[p] or rate0 ~= rate[p] then
            owed, changed = min(capacity[p] * cost[p], ceil(owed / cost0 * cost[p])), true
        end
    end
    is[p], debt[p], moved[p] = value, owed, changed
    return max(0, floor((capacity[p] * cost[p] - owed) / cost[p]))
end

-- The time until funnel limit p has room for n requests.  n is more than there is room for now, and at most the capacity.
local function funnel_wait(p, _, n) return ceil((debt[p] + n * cost[p] - capacity[p] * cost[p]) / rate[p]) end

-- Take n requests of funnel limit p; n may be 0.  Returns how many there is room for then, and the time until all is free.
local function funnel_take(p, key, n)
    local owed = debt[p] + n * cost[p]
    local reset = ceil(owed / rate[p])
    if n > 0 or moved[p] then
        if owed > 0 then
            set_for(key, struct.pack('<dddd', now, owed, cost[p], rate[p]), reset)
        elseif is[p] then
            call('DEL', key)
        end
    end
    return max(0, floor((capacity[p] * cost[p] - owed) / cost[p])), reset
end

-- The running total in a member of a sliding log.
local function total_of(member) return tonumber(string.sub(member, 1, 16)) end

-- Read the log of sliding limit p.  Returns how many requests there is room for.
local function sliding_look(p, key)
    at[p], total[p], base[p], newest[p], oldest[p] = now, 0, 0, 0, 0
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    if last[1] then
        total[p], newest[p] = total_of(last[1]), tonumber(last[2])
        at[p] = max(now, newest[p])
        local gone = call('ZREVRANGEBYSCORE', key, at[p] - period[p], '-inf', 'LIMIT', 0, 1)
        if gone[1] then
            base[p], oldest[p] = total_of(gone[1]), call('ZRANK', key, gone[1]) + 1
        else
            local first = call('ZRANGE', key, 0, 0)[1]
            base[p] = total_of(first) - tonumber(string.sub(first, 18))
        end
    end
    local used = total[p] - base[p]
    if newest[p] > now + period[p] then
        -- The key is not deleted first: while its slot is moved to another server, Redis would refuse to make the key again.
        local all = string.format('%016.0f:%.0f', total[p], used)
        at[p], newest[p], oldest[p] = now, now, 0
        call('ZREMRANGEBYRANK', key, 0, -2)
        call('ZADD', key, now, all)
        if all ~= last[1] then call('ZREM', key, last[1]) end
        call('PEXPIRE', key, ceil(period[p] / 1000) + 1)
    end
    return max(0, capacity[p] - used)
end

-- The time until sliding limit p has room for n requests.  n is more than there is room for now, and at most the capacity.
local function sliding_wait(p, key, n)
    local target, low, high = total[p] + n - capacity[p], oldest[p], call('ZCARD', key) - 1
    local middle = low -- looked at first, because most calls wait for the oldest entry
    while true do
        local entry = call('ZRANGE', key, middle, middle, 'WITHSCORES')
        if total_of(entry[1]) >= target then
            if middle == low then return tonumber(entry[2]) + period[p] - now end
            high = middle
        else
            low = middle + 1
        end
        middle = floor((low + high) / 2)
    end
end

-- Take n requests of sliding limit p, which may be 0.  Returns how many there is room for afterwards, and the time until all
-- is free.
local function sliding_take(p, key, n)
    if n > 0 then
        if oldest[p] > 1 then call('ZREMRANGEBYRANK', key, 0, min(oldest[p] - 1, 1000) - 1) end
        total[p], newest[p] = total[p] + n, at[p]
        call('ZADD', key, at[p], string.format('%016.0f:%.0f', total[p], n))
        call('PEXPIRE', key, ceil((at[p] + period[p] - now) / 1000) + 1)
    end
    local used = total[p] - base[p]
    return max(0, capacity[p] - used), used > 0 and newest[p] + period[p] - now or 0
end

-- A penalty's key holds doubles: the time when the penalty ends (us; 0: there is none), and the times of the last
-- refusals, the oldest first.  When a penalty begins the refusals are forgotten.  If Redis's clock went back, a penalty
-- lasts no longer than a new one would, and a refusal that lies in the future counts as one of now.
local most, within, lasts -- the penalty of the run at hand: refusals, us, us
local refusals -- times of the refusals that the penalty's key of the job at hand holds

-- The time that is left of the penalty (us); 0: there is none.
local function penalty_look(key)
    local value, ends = call('GET', key), 0
    refusals = {}
    if value and #value > 0 and #value % 8 == 0 then
        refusals = {struct.unpack('<' .. string.rep('d', #value / 8), value)}
        refusals[#refusals] = nil -- the last value is where unpack() has stopped
        ends = table.remove(refusals, 1)
    end
    if ends - now > lasts then
        ends = now + lasts
        set_for(key, struct.pack('<d', ends), lasts)
    end
    return max(0, ends - now)
end

-- Note a refusal.  Returns how long the penalty lasts that the refusal begins (us); 0: it begins none.
local function penalty_note(key)
    local kept = {0}
    for _, time in ipairs(refusals) do
        if time > now - within then kept[#kept + 1] = min(time, now) end
    end
    if #kept >= most then
        set_for(key, struct.pack('<d', now + lasts), lasts)
        return lasts
    end
    kept[#kept + 1] = now
    set_for(key, struct.pack('<' .. string.rep('d', #kept), unpack(kept)), within)
    return 0
end

local a, k, r = 1, 0, 2 -- index of the next argument; number of keys and of words of the reply before the job at hand
local jobs, n, limits, has_penalty = 0

-- Read the arguments of the next run.
local function read_run()
    jobs, n, limits, has_penalty = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), 0, false
    local parts = tonumber(ARGV[a + 2])
    a = a + 3
    for p = 1, parts do
        local kind, b, c, d = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
        if kind == 'penalty' then
            has_penalty, most, within, lasts = true, b, c, d
        else
            limits, capacity[p] = p, b
            if kind == 'funnel' then
                look[p], wait[p], take[p], cost[p], rate[p] = funnel_look, funnel_wait, funnel_take, c, d
            else
                look[p], wait[p], take[p], period[p] = sliding_look, sliding_wait, sliding_take, c
            end
        end
        a = a + 4
    end
end

local lefts = {}
while k < #KEYS do
    if jobs == 0 then read_run() end
    jobs = jobs - 1
    local left, blocked, rest, granted, retry, strictest = huge, 0, 0, n, 0, 1
    local penalty_key = KEYS[k + limits + 1]
    for p = 1, limits do
        lefts[p] = look[p](p, KEYS[k + p])
        left = min(left, lefts[p])
    end
    if has_penalty then rest = penalty_look(penalty_key) end
    if n > left or rest > 0 then
        for p = 1, limits do
            local us = n > capacity[p] and huge or n > lefts[p] and wait[p](p, KEYS[k + p], n) or 0
            if us > blocked then blocked, strictest = us, p end
        end
        granted = -1
        if rest > 0 and blocked < huge then
            granted = -2
        elseif rest == 0 and has_penalty then
            rest = penalty_note(penalty_key)
        end
        retry = blocked == huge and -1 or max(blocked, rest)
    end
    local remaining, reset = huge, 0
    for p = 1, limits do
        local left1, reset1 = take[p](p, KEYS[k + p], max(0, granted))
        if blocked == 0 and (left1 < remaining or left1 == remaining and reset1 > reset) then strictest = p end
        if strictest == p then reset = reset1 end
        remaining = min(remaining, left1)
    end
    if rest > 0 then remaining, reset = 0, max(reset, rest) end
    reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4], reply[r + 5] = granted, remaining, retry, reset, strictest - 1
    k, r = k + limits + (has_penalty and 1 or 0), r + 5
end
return reply
