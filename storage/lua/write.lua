#!lua
-- write.lua - apply parts of flushes to their partitions, each exactly once.  Encoded by storage/encode.c.
--
-- KEYS: the direct claims; then part by part:  1 rolled  2 once:<writer>  3 open  4 sites  then the units' markers (and claims), then data keys in the order of use below
-- ARGV: 1 number of parts  2 cfg  3 ttl (ms)  4 number of direct claims, and the record of each one
--       then part by part:  number of keys  number of arguments behind this  st expected  ver to set ('' none)  seq
--       gen (ms)  generation of users relied on ('' none)  and counted sections: units (requests with a key; before them the number of claims: as many, or 0), members
--       for open, members for sites, counts, visits, activity, seen.
-- Reply: {seconds, microseconds of Redis's clock, microseconds taken, code, st, code, st..}: per part a code, and with
--       REPLAN st (else '')
--       code 0 OK, 1 REPLAN, 2 GAP, 3 STALE, 4 CFG, 5 NEW (the partition has no state), 6 USERS (a user was
--       forgotten since: the indices sent may be nobody's).  With OK, in place of st, '' or {logs of "seen" that are
--       due to be folded, each with a blank; and where users' bits were set the generation of users, and the indices
--       of the users that came by name}
--       7 KNOWN (units were applied before: nothing done, and instead of st their numbers, the last one first, each
--       with how many tasks its marker counts, O: another body's, L: too late)
--
--       8 HELD (nothing done, because of another part or a direct claim)
--       With direct claims, last: the numbers of those whose key was used already, the last one first.
--
-- A direct claim is a request with a key all of which is in this script: its record (see claim.lua) is written done, with
-- the answer, along with its events.  Then either all parts are applied, or nothing is.
--
-- Parts know nothing of each other; together they save what a script costs each.  (In a cluster a script has one
-- part: it must not leave its slot.)  Nothing after a marker is set can fail: types and arguments were checked by the
-- encoder.
local call = redis.call
local t = call('TIME')
local s, us = tonumber(t[1]), tonumber(t[2])
local now = s * 1000 + math.floor(us / 1000)

-- Add n numbers to n fields of a hash ('H') or members of a zset ('Z'): pages from ARGV[p] on or the list p, numbers
-- likewise.  One read and one write for all of them is a quarter of the cost of n increments.
local function add(kind, key, n, pages, page, numbers, number)
    if n == 1 and kind == 'H' then
        call('HINCRBY', key, pages[page], numbers[number])
        return
    end
    local is = call(kind == 'H' and 'HMGET' or 'ZMSCORE', key, unpack(pages, page, page + n - 1))
    local set, s1, s2 = {}, kind == 'H' and 0 or 1, kind == 'H' and 1 or 0
    for i = 1, n do
        set[2 * i - 1 + s1] = pages[page + i - 1]
        set[2 * i - 1 + s2] = (is[i] or 0) + numbers[number + i - 1]
    end
    call(kind == 'H' and 'HSET' or 'ZADD', key, unpack(set, 1, 2 * n))
end

-- The generation of users of each part, by its k0.
local users = {}

-- The n units with markers behind KEYS[k0] and arguments behind ARGV[a0], three each: the marker to set (gen, 13 digits,
-- number of tasks, 7, body), the time from which on nothing of it may be applied, the number that the marker must have.
-- Behind the markers their claims, if those are here: one that is gone, or written directly (without a lease), was lost with
-- Redis's last second, and who repeats the request may write it directly, with no look at markers: nothing of it may be applied.
-- Returns '' if all may be applied.
local function known(k0, a0, n, claims)
    local markers, found = call('MGET', unpack(KEYS, k0 + 1, k0 + n + claims)), {}
    for i = n, 1, -1 do
        local a = a0 + 3 * i - 2
        local value, from, marker, have = ARGV[a], tonumber(ARGV[a + 2]), markers[i], 0
        if marker then
            local gen, was = tonumber(string.sub(value, 1, 13)), tonumber(string.sub(marker, 1, 13))
            if gen < was + 86400000 then -- decided by the generations, not by when a marker happens to expire
                have = string.sub(marker, 21) == string.sub(value, 21) and tonumber(string.sub(marker, 14, 20)) or 'O'
                if gen > was then
                    call('SET', KEYS[k0 + i], string.sub(value, 1, 13) .. string.sub(marker, 14), 'PX', 176400000)
                end
            end
        end
        local claim = markers[n + i]
        local mine = claims == 0 or claim and string.sub(claim, 2, 14) == string.sub(value, 1, 13) and string.sub(claim, 15, 27) ~= '0000000000000'
        if not mine or now >= tonumber(ARGV[a + 1]) then have = 'L' end
        if have ~= from then
            found[#found + 1] = i .. ' ' .. (type(have) == 'number' and string.format('%.0f', have) or have)
        end
    end
    return table.concat(found, ' ')
end

-- Keys behind k0, arguments behind a0.  Why the part cannot be applied (code, st), or nil.
local function refusal(k0, a0)
    local rolled = call('HMGET', KEYS[k0 + 1], 'cfg', 'st', 'users')
    if not rolled[1] then return 5, '' end
    if rolled[1] ~= ARGV[2] then return 4, '' end
    if now >= tonumber(ARGV[a0 + 4]) + tonumber(ARGV[3]) then return 3, '' end
    local seq = tonumber(ARGV[a0 + 3])
    local last = tonumber(call('GET', KEYS[k0 + 2]) or '0')
    if seq <= last then return 0, '' end
    if seq > last + 1 then return 2, '' end
    if rolled[2] ~= ARGV[a0 + 1] then return 1, rolled[2] end
    users[k0] = rolled[3] or '-'
    if ARGV[a0 + 5] ~= '' and ARGV[a0 + 5] ~= users[k0] then return 6, '' end
    local units = tonumber(ARGV[a0 + 7])
    if units > 0 then
        local found = known(k0 + 4, a0 + 7, units, tonumber(ARGV[a0 + 6]))
        if found ~= '' then return 7, found end
    end
end

-- Keys behind k0, arguments behind a0.  Returns the code, and st.
local function apply(k0, a0)
    local units, claims = tonumber(ARGV[a0 + 7]), tonumber(ARGV[a0 + 6])
    call('SET', KEYS[k0 + 2], ARGV[a0 + 3], 'PX', 3600000)
    if ARGV[a0 + 2] ~= '' then call('HSET', KEYS[k0 + 1], 'ver', ARGV[a0 + 2]) end

    for i = 1, units do
        call('SET', KEYS[k0 + 4 + i], ARGV[a0 + 5 + 3 * i], 'PX', 176400000)
    end

    local a, k = a0 + 8 + 3 * units, k0 + 5 + units + claims -- next argument, next key

    for announced = 3, 4 do
        local n = tonumber(ARGV[a])
        if n > 0 then call('SADD', KEYS[k0 + announced], unpack(ARGV, a + 1, a + n)) end
        a = a + 1 + n
    end

    -- Counts.  A bucket: 'H' or 'Z', when it expires (ms; 0: not yet), number of pages; pages; views; its pv key.  Then per
    -- page the number of visitors, visitors.., number of addresses, addresses..; keys uv and ip where there are any.
    -- A bucket whose time is over is passed over: PEXPIREAT would delete it at once.
    for _ = 1, tonumber(ARGV[a]) do
        local kind, expire, pages = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
        local live = expire == 0 or now < expire
        local stays = expire == 0
        if live then
            add(kind, KEYS[k], pages, ARGV, a + 4, ARGV, a + 4 + pages)
            if not stays then call('PEXPIREAT', KEYS[k], expire, 'NX') end
        end
        a, k = a + 3 + 2 * pages, k + 1
        for _ = 1, 2 * pages do -- visitors and addresses in turn
            a = a + 1
            local n = ARGV[a]
            if n == '1' then
                a = a + 1
                if live then call('PFADD', KEYS[k], ARGV[a]) end
            elseif n ~= '0' then
                n = tonumber(n)
                if live then call('PFADD', KEYS[k], unpack(ARGV, a + 1, a + n)) end
                a = a + n
            end
            if n ~= '0' then
                if live and not stays then call('PEXPIREAT', KEYS[k], expire, 'NX') end
                k = k + 1
            end
        end
    end
    a = a + 1

    -- Visits, site by site (never more than 1,000 visitors at a time).  A visitor's entry is the time of the
    -- last event and that of its arrival, 11 digits each; hashes are cut by arrival time, so that they can expire as a
    -- whole.  A candidate is an event that starts a visit unless what is remembered says otherwise.
    for _ = 1, tonumber(ARGV[a]) do
        local timeout, minutes, visitors = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
        local prefix = KEYS[k]
        a, k = a + 4, k + 1
        local buckets, starts_of = {}, {} -- by number; starts by the number as text
        for m = 1, minutes do
            local levels, starts = {}, {}
            for l = 1, tonumber(ARGV[a]) do
                levels[l] = {key = KEYS[k], kind = ARGV[a + 1], expire = tonumber(ARGV[a + 2])}
                a, k = a + 2, k + 1
            end
            a = a + 1
            buckets[m] = {levels = levels, starts = starts}
            starts_of[string.format('%.0f', m)] = starts
        end
        local slot = math.floor(s / timeout)
        local current = prefix .. string.format('%.0f', slot)
        local known = call('HMGET', current, unpack(ARGV, a, a + visitors - 1))
        local left, where, n = {}, {}, 0 -- not found yet, and their positions
        for i = 1, visitors do
            if not known[i] then
                n = n + 1
                left[n], where[n] = ARGV[a + i - 1], i
            end
        end
        local fresh = n == visitors -- none of them is in the current slot
        for back = 1, 2 do -- only those not found yet are looked for further back
            local older = prefix .. string.format('%.0f', slot - back)
            if n > 0 and call('EXISTS', older) == 1 then
                local found, still, still_where, m = call('HMGET', older, unpack(left, 1, n)), {}, {}, 0
                for i = 1, n do
                    if found[i] then
                        known[where[i]] = found[i]
                    else
                        m = m + 1
                        still[m], still_where[m] = left[i], where[i]
                    end
                end
                left, where, n = still, still_where, m
            end
        end
        local ids = a
        local set, arrival = {}, string.format('%011.0f', s)
        a = a + visitors
        for i = 1, visitors do
            local newest, candidates, entry = ARGV[a], ARGV[a + 1], known[i]
            local last_seen = nil
            if entry and s - tonumber(string.sub(entry, 12)) <= 2 * timeout then
                last_seen = tonumber(string.sub(entry, 1, 11))
            end
            if not last_seen and candidates == '1' then -- most are new, and come once
                local starts, page = starts_of[ARGV[a + 3]], ARGV[a + 4]
                starts[page] = (starts[page] or 0) + 1
                a = a + 3
            else
                for _ = 1, tonumber(candidates) do
                    if not last_seen or tonumber(ARGV[a + 2]) > last_seen + timeout then
                        local starts, page = starts_of[ARGV[a + 3]], ARGV[a + 4]
                        starts[page] = (starts[page] or 0) + 1
                    end
                    a = a + 3
                end
            end
            a = a + 2
            if last_seen and last_seen > tonumber(newest) then
                newest = string.sub(entry, 1, 11)
            end
            set[2 * i - 1], set[2 * i] = ARGV[ids + i - 1], newest .. arrival
        end
        local added = call('HSET', current, unpack(set))
        if fresh and added == call('HLEN', current) then -- a new slot; the one before the last two is asked for no more
            call('EXPIRE', current, 4 * timeout + 60)
            call('UNLINK', prefix .. string.format('%.0f', slot - 3))
        end
        for m = 1, minutes do
            local pages, numbers = {''}, {0} -- the site itself comes first
            for page, n in pairs(buckets[m].starts) do
                pages[#pages + 1], numbers[#numbers + 1] = page, n
                numbers[1] = numbers[1] + n
            end
            for _, level in ipairs(buckets[m].levels) do
                if #pages > 1 and (level.expire == 0 or now < level.expire) then
                    add(level.kind, level.key, #pages, pages, 1, numbers, 1)
                    if level.expire > 0 then call('PEXPIREAT', level.key, level.expire, 'NX') end
                end
            end
        end
        a = a - 1
    end
    a = a + 1

    -- Activity: the key of `acts`, then site by site (never more than 1,000 users at a time) the keys uid and ids:
    -- and those of the bitmaps.  Number of users that come by name, number of bitmaps; the names; per bitmap when it
    -- expires (ms; 0: never), its day, number of bits, and whose: an index, or -n for the n-th name.  Who has no index
    -- yet gets the next one: dense, given once, never again.
    local sites, learnt = tonumber(ARGV[a]), ''
    if sites > 0 then
        learnt = {'', users[k0]}
        local acts = KEYS[k]
        k = k + 1
        for _ = 1, sites do
            local names, bitmaps = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
            local uid, ids, index = KEYS[k], KEYS[k + 1], {}
            a, k = a + 2, k + 2
            if names > 0 then
                index = call('HMGET', uid, unpack(ARGV, a + 1, a + names))
                local set, n = {}, 0
                for i = 1, names do
                    if not index[i] then
                        n = n + 1
                        set[2 * n - 1], set[2 * n] = ARGV[a + i], i
                    end
                end
                if n > 0 then
                    local given, block, m = call('HINCRBY', uid, '', n) - n, {}, 0
                    for j = 1, n do
                        m = m + 1
                        block[m] = set[2 * j - 1]
                        index[set[2 * j]] = given
                        set[2 * j] = given
                        given = given + 1
                        if given % 128 == 0 or j == n then -- a name's place in its block's list is its index's
                            call('RPUSH', ids .. string.format('%.0f', math.floor((given - 1) / 128)), unpack(block, 1, m))
                            m = 0
                        end
                    end
                    call('HSET', uid, unpack(set))
                end
                for i = 1, names do learnt[#learnt + 1] = index[i] end
                a = a + names
            end
            for _ = 1, bitmaps do
                local bitmap, expire, n = KEYS[k], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 3])
                if expire == 0 or now < expire then
                    if call('EXISTS', bitmap) == 0 then -- "t:{p}:acts" is as long as "t:{p}:act:"
                        call('ZADD', acts, ARGV[a + 2], string.sub(bitmap, #acts + 1))
                    end
                    local set = {}
                    for i = 1, n do
                        local whose = ARGV[a + 3 + i]
                        if string.sub(whose, 1, 1) == '-' then whose = index[-tonumber(whose)] end
                        set[4 * i - 3], set[4 * i - 2], set[4 * i - 1], set[4 * i] = 'SET', 'u1', whose, '1'
                    end
                    call('BITFIELD', bitmap, unpack(set))
                end
                a, k = a + 3 + n, k + 1
            end
        end
    end
    a = a + 1

    -- Seen, log by log: when it expires (ms), fingerprints of pairs (user, page), 8 bytes each.  (See seen_layout.h.)  A
    -- log is due each time it passes a multiple of 128 KiB.
    local due = ''
    for _ = 1, tonumber(ARGV[a]) do
        local n, more = call('APPEND', KEYS[k], ARGV[a + 2]), #ARGV[a + 2]
        if n == more then call('PEXPIREAT', KEYS[k], ARGV[a + 1]) end
        if n % 131072 < more then
            if n >= 131072 then due = due .. KEYS[k] .. ' ' end
        end
        a, k = a + 2, k + 1
    end
    if due ~= '' then
        if learnt == '' then learnt = {due} else learnt[1] = due end
    end
    return 0, learnt
end

-- Call f with the keys and arguments of each part.
local direct = tonumber(ARGV[4])
local function each(f)
    local a, k = 4 + direct, direct
    for part = 1, tonumber(ARGV[1]) do
        local keys, arguments = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
        f(part, k, a + 2)
        a, k = a + 2 + arguments, k + keys
    end
end

local reply, codes, held, taken = {s, us, 0}, {}, false, {}
if direct > 0 then
    each(function(part, k, a)
        codes[part] = {refusal(k, a)}
        held = held or codes[part][1] ~= nil
    end)
    local is, first = call('MGET', unpack(KEYS, 1, direct)), {}
    for i = 1, direct do
        first[KEYS[i]] = first[KEYS[i]] or i -- two may ask with one key in one flush
    end
    for i = direct, 1, -1 do
        if first[KEYS[i]] ~= i or is[i] and now < tonumber(string.sub(is[i], 2, 14)) + 86400000 then
            taken[#taken + 1] = i
        end
    end
    held = held or #taken > 0
    for i = 1, held and 0 or direct do
        call('SET', KEYS[i], ARGV[4 + i], 'PX', 172800000)
    end
end
each(function(part, k, a)
    local code, st
    if direct == 0 then
        code, st = refusal(k, a)
    elseif held then
        code, st = codes[part][1] or 8, codes[part][2]
    end
    if not code then code, st = apply(k, a) end
    reply[2 * part + 2], reply[2 * part + 3] = code, st or ''
end)
if direct > 0 then reply[#reply + 1] = table.concat(taken, ' ') end
t = call('TIME')
reply[3] = (tonumber(t[1]) - s) * 1000000 + tonumber(t[2]) - us
return reply
