#!lua
-- write.lua - apply one part of a flush to one partition, exactly once.  Encoded by storage/encode.c.
--
-- KEYS: 1 rolled  2 once:<writer>  3 open  4 sites  then data keys in the order of use below
-- ARGV: 1 cfg  2 st expected  3 ver to set ('' none)  4 seq  5 gen (ms)  6 ttl (ms)
--       then counted sections: members for open, members for sites, counts, visits.
-- Reply: {code, seconds, microseconds of Redis's clock, st with REPLAN}
--       code 0 OK, 1 REPLAN, 2 GAP, 3 STALE, 4 CFG, 5 NEW (the partition has no state)
--
-- Nothing after the marker is set can fail: types and arguments were checked by the encoder.
local call = redis.call
local t = call('TIME')
local s, us = tonumber(t[1]), tonumber(t[2])
local now = s * 1000 + math.floor(us / 1000)
local rolled = call('HMGET', KEYS[1], 'cfg', 'st')

if not rolled[1] then return {5, s, us} end
if rolled[1] ~= ARGV[1] then return {4, s, us} end
if now >= tonumber(ARGV[5]) + tonumber(ARGV[6]) then return {3, s, us} end
local seq = tonumber(ARGV[4])
local last = tonumber(call('GET', KEYS[2]) or '0')
if seq <= last then return {0, s, us} end
if seq > last + 1 then return {2, s, us} end
if rolled[2] ~= ARGV[2] then return {1, s, us, rolled[2]} end
call('SET', KEYS[2], ARGV[4], 'PX', 3600000)
if ARGV[3] ~= '' then call('HSET', KEYS[1], 'ver', ARGV[3]) end

local a, k = 7, 5 -- next argument, next key

for announced = 3, 4 do
    local n = tonumber(ARGV[a])
    if n > 0 then call('SADD', KEYS[announced], unpack(ARGV, a + 1, a + n)) end
    a = a + 1 + n
end

-- Elements into a HyperLogLog; unpack() is good for less than 8,000 values.
local function add(key, from, n)
    while n > 0 do
        local m = n > 4000 and 4000 or n
        call('PFADD', key, unpack(ARGV, from, from + m - 1))
        from, n = from + m, n - m
    end
end

-- Counts.  A bucket: increment command, when it expires (ms; 0: not yet), number of pages; its pv key.
-- A page: itself, views, visitors.., addresses..; keys uv and ip where it has any.
-- A bucket whose time is over is passed over: PEXPIREAT would delete it at once.
for _ = 1, tonumber(ARGV[a]) do
    local increment, expire, pages = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
    local live = expire == 0 or now < expire
    local pv = KEYS[k]
    a, k = a + 3, k + 1
    for _ = 1, pages do
        local uv = tonumber(ARGV[a + 3])
        local ip = tonumber(ARGV[a + 4 + uv])
        if live then
            if increment == 'H' then
                call('HINCRBY', pv, ARGV[a + 1], ARGV[a + 2])
            else
                call('ZINCRBY', pv, ARGV[a + 2], ARGV[a + 1])
            end
            if uv > 0 then
                add(KEYS[k], a + 4, uv)
                if expire > 0 then call('PEXPIREAT', KEYS[k], expire, 'NX') end
            end
            if ip > 0 then
                local key = KEYS[uv > 0 and k + 1 or k]
                add(key, a + 5 + uv, ip)
                if expire > 0 then call('PEXPIREAT', key, expire, 'NX') end
            end
        end
        a = a + 4 + uv + ip
        k = k + (uv > 0 and 1 or 0) + (ip > 0 and 1 or 0)
    end
    if live and expire > 0 then call('PEXPIREAT', pv, expire, 'NX') end
end
a = a + 1

-- Visits, site by site (never more than 1,000 visitors at a time).  A visitor's entry is the time of the
-- last event and that of its arrival, 11 digits each; hashes are cut by arrival time, so that they can expire as a
-- whole.  A candidate is an event that starts a visit unless what is remembered says otherwise.
for _ = 1, tonumber(ARGV[a]) do
    local timeout, minutes, visitors = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
    local prefix = KEYS[k]
    a, k = a + 4, k + 1
    local buckets = {}
    for m = 1, minutes do
        local levels = {}
        for l = 1, tonumber(ARGV[a]) do
            levels[l] = {key = KEYS[k], increment = ARGV[a + 1], expire = tonumber(ARGV[a + 2])}
            a, k = a + 2, k + 1
        end
        a = a + 1
        buckets[m] = {levels = levels, starts = {}}
    end
    local slot = math.floor(s / timeout)
    local current = prefix .. string.format('%.0f', slot)
    local known = {}
    for back = 0, 2 do
        local found = call('HMGET', prefix .. string.format('%.0f', slot - back),
            unpack(ARGV, a, a + visitors - 1))
        for i = 1, visitors do known[i] = known[i] or found[i] end
    end
    local ids = a
    local set, arrival, fresh = {}, string.format('%011.0f', s), true
    a = a + visitors
    for i = 1, visitors do
        local newest = ARGV[a]
        local last_seen = nil
        if known[i] then
            fresh = false
            if s - tonumber(string.sub(known[i], 12)) <= 2 * timeout then
                last_seen = tonumber(string.sub(known[i], 1, 11))
            end
        end
        for _ = 1, tonumber(ARGV[a + 1]) do
            if not last_seen or tonumber(ARGV[a + 2]) > last_seen + timeout then
                local starts, page = buckets[tonumber(ARGV[a + 3])].starts, ARGV[a + 4]
                starts[page] = (starts[page] or 0) + 1
            end
            a = a + 3
        end
        a = a + 2
        if last_seen and last_seen > tonumber(newest) then
            newest = string.sub(known[i], 1, 11)
        end
        set[2 * i - 1], set[2 * i] = ARGV[ids + i - 1], newest .. arrival
    end
    local added = call('HSET', current, unpack(set))
    if fresh and added == call('HLEN', current) then -- a new slot: the one that nobody asks for any more
        call('UNLINK', prefix .. string.format('%.0f', slot - 3))
    end
    call('EXPIRE', current, 4 * timeout + 60)
    for m = 1, minutes do
        for _, level in ipairs(buckets[m].levels) do
            if (level.expire == 0 or now < level.expire) and next(buckets[m].starts) then
                local total = 0
                for page, n in pairs(buckets[m].starts) do
                    total = total + n
                    if level.increment == 'H' then
                        call('HINCRBY', level.key, page, n)
                    else
                        call('ZINCRBY', level.key, n, page)
                    end
                end
                if level.increment == 'H' then
                    call('HINCRBY', level.key, '', total)
                else
                    call('ZINCRBY', level.key, total, '')
                end
                if level.expire > 0 then call('PEXPIREAT', level.key, level.expire, 'NX') end
            end
        end
    end
    a = a - 1
end
return {0, s, us}
