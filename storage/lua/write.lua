#!lua
-- write.lua - apply parts of flushes to their partitions, each exactly once.  Encoded by storage/write/encode.c.
--
-- KEYS: the direct claims; then part by part:  1 state  2 once:<writer>  3 open  4 sites  then the units' markers (and claims), then data keys in the order of use below
-- ARGV: 1 number of parts  2 cfg  3 ttl (ms)  4 an id, never used before  5 number of direct claims, and the record of each one
--       then part by part:  number of keys  number of arguments behind this  st expected  ver to set ('' none)  seq
--       gen (ms)  generation of users relied on ('' none)  the oldest minute written to (s)  and counted sections: units (requests with a key; before them the number of claims: as many, or 0), members
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
local call, text, sub, floor, unpack = redis.call, string.format, string.sub, math.floor, unpack
local KEYS, ARGV = KEYS, ARGV
local t = call('TIME')
local s, us = tonumber(t[1]), tonumber(t[2])
local now = s * 1000 + floor(us / 1000)

-- Numbers of texts and texts of whole numbers.  Most are small and come again: looking one up costs a twentieth of
-- making it.  But remembering it costs three times as much, so what there is once a part is left to Lua to convert.
local num = setmetatable({}, {__index = function(known, t)
    local n = tonumber(t)
    known[t] = n
    return n
end})
local numeral = setmetatable({}, {__index = function(known, n)
    local t = text('%d', n)
    known[n] = t
    return t
end})
local arrival = text('%011d', s)

-- Minutes that end by then are taken for over, a minute's grace included: hardly anything is written to them any more.
-- `over` says how far that went, and has a new id whenever it goes further or something is written to them all the same:
-- so while it is the same, they are.  By the stored time, not by the clock, which may go back.
local over = floor(s / 60) * 60 - 60

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
        set[2 * i - 1 + s2] = numeral[(is[i] or 0) + numbers[number + i - 1]]
    end
    call(kind == 'H' and 'HSET' or 'ZADD', key, unpack(set, 1, 2 * n))
end

-- Of each part, by its k0: the generation of users, and the time of `over`.
local users, was_over = {}, {}

-- The n units with markers behind KEYS[k0] and arguments behind ARGV[a0], three each: the marker to set (gen, 13 digits,
-- number of tasks, 7, body), the time from which on nothing of it may be applied, the number that the marker must have.
-- Behind the markers their claims, if those are here: one that is gone, or written directly (without a lease), was lost with
-- Redis's last second, and who repeats the request may write it directly, with no look at markers: nothing of it may be applied.
-- Returns '' if all may be applied.
local function known(k0, a0, n, claims)
    local markers, found = call('MGET', unpack(KEYS, k0 + 1, k0 + n + claims)), {}
    for i = n, 1, -1 do
        local a = a0 + 3 * i - 2
        local value, from, marker, have = ARGV[a], num[ARGV[a + 2]], markers[i], 0
        if marker then
            local gen, was = tonumber(sub(value, 1, 13)), tonumber(sub(marker, 1, 13))
            if gen < was + 86400000 then -- decided by the generations, not by when a marker happens to expire
                have = sub(marker, 21) == sub(value, 21) and tonumber(sub(marker, 14, 20)) or 'O'
                if gen > was then
                    call('SET', KEYS[k0 + i], sub(value, 1, 13) .. sub(marker, 14), 'PX', 176400000)
                end
            end
        end
        local claim = markers[n + i]
        local mine = claims == 0 or claim and sub(claim, 2, 14) == sub(value, 1, 13) and sub(claim, 15, 27) ~= '0000000000000'
        if not mine or now >= num[ARGV[a + 1]] then have = 'L' end
        if have ~= from then
            found[#found + 1] = i .. ' ' .. (type(have) == 'number' and string.format('%.0f', have) or have)
        end
    end
    return table.concat(found, ' ')
end

-- Keys behind k0, arguments behind a0.  Why the part cannot be applied (code, st), or nil.
local function refusal(k0, a0)
    local state = call('HMGET', KEYS[k0 + 1], 'cfg', 'st', 'users', 'over')
    if not state[1] then return 5, '' end
    if state[1] ~= ARGV[2] then return 4, '' end
    if now >= ARGV[a0 + 4] + ARGV[3] then return 3, '' end
    local ahead = ARGV[a0 + 3] - (call('GET', KEYS[k0 + 2]) or 0)
    if ahead <= 0 then return 0, '' end
    if ahead > 1 then return 2, '' end
    if state[2] ~= ARGV[a0 + 1] then return 1, state[2] end
    users[k0] = state[3] or '-'
    was_over[k0] = tonumber(sub(state[4] or '', 1, 11)) or 0
    if ARGV[a0 + 5] ~= '' and ARGV[a0 + 5] ~= users[k0] then return 6, '' end
    if ARGV[a0 + 8] ~= '0' then
        local found = known(k0 + 4, a0 + 8, num[ARGV[a0 + 8]], num[ARGV[a0 + 7]])
        if found ~= '' then return 7, found end
    end
end

-- Keys behind k0, arguments behind a0.  Returns the code, and st.
local function apply(k0, a0)
    local units, claims = 0, 0
    if ARGV[a0 + 8] ~= '0' then units, claims = num[ARGV[a0 + 8]], num[ARGV[a0 + 7]] end
    call('SET', KEYS[k0 + 2], ARGV[a0 + 3], 'PX', 3600000)
    if ARGV[a0 + 2] ~= '' then call('HSET', KEYS[k0 + 1], 'ver', ARGV[a0 + 2]) end
    local was = was_over[k0]
    if over > was or ARGV[a0 + 6] - was < 0 then
        call('HSET', KEYS[k0 + 1], 'over', text('%011d ', over > was and over or was) .. ARGV[4])
    end

    for i = 1, units do
        call('SET', KEYS[k0 + 4 + i], ARGV[a0 + 6 + 3 * i], 'PX', 176400000)
    end

    local a, k = a0 + 9 + 3 * units, k0 + 5 + units + claims -- next argument, next key

    for announced = 3, 4 do
        if ARGV[a] ~= '0' then
            local n = num[ARGV[a]]
            call('SADD', KEYS[k0 + announced], unpack(ARGV, a + 1, a + n))
            a = a + n
        end
        a = a + 1
    end

    -- Counts.  A bucket: 'H' or 'Z', when it expires (ms; 0: not yet), number of pages; pages; views; its pv key.  Then per
    -- page the number of visitors, visitors.., number of addresses, addresses..; keys uv and ip where there are any.
    -- A bucket whose time is over is passed over: PEXPIREAT would delete it at once.
    for _ = 1, ARGV[a] do
        local kind, expire, pages = ARGV[a + 1], num[ARGV[a + 2]], num[ARGV[a + 3]]
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

    -- Visits, site by site (never more than 1,000 visitors at a time; see merge_visits.c).  A visitor's entry is the time of the
    -- last event and that of its arrival, 11 digits each; hashes are cut by arrival time, so that they can expire as a
    -- whole.  A candidate is an event that starts a visit unless what is remembered says otherwise.
    for _ = 1, ARGV[a] do
        local timeout, minutes, visitors = num[ARGV[a + 1]], num[ARGV[a + 2]], num[ARGV[a + 3]]
        local prefix = KEYS[k]
        a, k = a + 4, k + 1
        local buckets = {}
        for m = 1, minutes do
            local levels = {}
            for l = 1, num[ARGV[a]] do
                levels[l] = {key = KEYS[k], kind = ARGV[a + 1], expire = num[ARGV[a + 2]]}
                a, k = a + 2, k + 1
            end
            a = a + 1
            buckets[m] = {levels = levels, starts = {}}
        end
        local slot = floor(s / timeout)
        local current, missing = prefix .. numeral[slot], 0
        local known = call('HMGET', current, unpack(ARGV, a, a + visitors - 1))
        for i = 1, visitors do
            if not known[i] then missing = missing + 1 end
        end
        local fresh = missing == visitors -- none of them is in the current slot
        local older = {prefix .. numeral[slot - 1], prefix .. numeral[slot - 2]}
        local back = missing > 0 and call('EXISTS', older[1], older[2]) > 0 and 1 or 3
        while back < 3 and missing > 0 do -- only those not found yet are looked for further back
            local left, where, n = {}, {}, 0
            for i = 1, visitors do
                if not known[i] then
                    n = n + 1
                    left[n], where[n] = ARGV[a + i - 1], i
                end
            end
            local found = call('HMGET', older[back], unpack(left, 1, n))
            for i = 1, n do
                if found[i] then
                    known[where[i]] = found[i]
                    missing = missing - 1
                end
            end
            back = back + 1
        end
        local ids, set, i = a - 1, {}, 0
        -- The time of the last event of visitor i, as text too, if it is remembered.
        local function last_seen(i)
            local entry = known[i]
            if entry and s - num[sub(entry, 12)] <= 2 * timeout then
                local last = sub(entry, 1, 11)
                return num[last], last
            end
        end
        a = a + visitors
        -- Those that came once, time by time and page by page.
        for _ = 1, num[ARGV[a]] do
            local newest, starts, pages = ARGV[a + 1], buckets[num[ARGV[a + 2]]].starts, num[ARGV[a + 3]]
            local at, entry = num[newest], newest .. arrival
            a = a + 3
            for p = a + 1, a + 2 * pages, 2 do
                local n = 0
                for _ = 1, num[ARGV[p + 1]] do
                    i = i + 1
                    set[2 * i - 1], set[2 * i] = ARGV[ids + i], entry
                    local last, was = nil, nil
                    if known[i] then last, was = last_seen(i) end
                    if not last or at > last + timeout then n = n + 1 end
                    if last and last > at then set[2 * i] = was .. arrival end
                end
                if n > 0 then starts[ARGV[p]] = (starts[ARGV[p]] or 0) + n end
            end
            a = a + 2 * pages
        end
        a = a + 1
        -- The others.
        for i = i + 1, visitors do
            local newest, last, was = ARGV[a], last_seen(i)
            for _ = 1, num[ARGV[a + 1]] do
                if not last or num[ARGV[a + 2]] > last + timeout then
                    local starts, page = buckets[num[ARGV[a + 3]]].starts, ARGV[a + 4]
                    starts[page] = (starts[page] or 0) + 1
                end
                a = a + 3
            end
            a = a + 2
            if last and last > num[newest] then newest = was end
            set[2 * i - 1], set[2 * i] = ARGV[ids + i], newest .. arrival
        end
        local added = call('HSET', current, unpack(set))
        if fresh and added == call('HLEN', current) then -- a new slot; the one before the last two is asked for no more
            call('EXPIRE', current, 4 * timeout + 60)
            call('UNLINK', prefix .. numeral[slot - 3])
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
    -- expires (ms; 0: never), its day, number of what follows, and whose the bits are: an index, -n for the n-th name, or
    -- * for every name.  Who has no index yet gets the next one: dense, given once, never again.
    local sites, learnt = ARGV[a], ''
    if sites ~= '0' then
        learnt = {'', users[k0]}
        local acts = KEYS[k]
        k = k + 1
        for _ = 1, sites do
            local names, bitmaps = num[ARGV[a + 1]], num[ARGV[a + 2]]
            local uid, ids, index, first, fresh = KEYS[k], KEYS[k + 1], {}, 0, 0 -- the first index given now, and how many
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
                    local block, m = {}, 0
                    first, fresh = call('HINCRBY', uid, '', n) - n, n
                    for j = 1, n do
                        local given = first + j - 1
                        m = m + 1
                        block[m] = set[2 * j - 1]
                        index[set[2 * j]] = given
                        set[2 * j] = text('%d', given)
                        if given % 128 == 127 or j == n then -- a name's place in its block's list is its index's
                            call('RPUSH', ids .. numeral[floor(given / 128)], unpack(block, 1, m))
                            m = 0
                        end
                    end
                    call('HSET', uid, unpack(set))
                end
                for i = 1, names do learnt[#learnt + 1] = index[i] end
                a = a + names
            end
            for _ = 1, bitmaps do
                local bitmap, expire, n = KEYS[k], num[ARGV[a + 1]], num[ARGV[a + 3]]
                if expire == 0 or now < expire then
                    if call('EXISTS', bitmap) == 0 then -- "t:{p}:acts" is as long as "t:{p}:act:"
                        call('ZADD', acts, ARGV[a + 2], sub(bitmap, #acts + 1))
                    end
                    local set, m = {}, 0
                    local function bit(whose, kind, ones)
                        set[m + 1], set[m + 2], set[m + 3], set[m + 4] = 'SET', kind, whose, ones
                        m = m + 4
                    end
                    for i = a + 4, a + 3 + n do
                        local whose = ARGV[i]
                        if whose == '*' then
                            for j = 1, fresh < names and names or 0 do
                                if type(index[j]) == 'string' then bit(index[j], 'u1', '1') end
                            end
                            for at = first, first + fresh - 1, 32 do -- those given now follow each other
                                local width = math.min(32, first + fresh - at)
                                bit(text('%d', at), 'u' .. numeral[width], numeral[2 ^ width - 1])
                            end
                        elseif sub(whose, 1, 1) == '-' then
                            bit(index[-num[whose]], 'u1', '1')
                        else
                            bit(whose, 'u1', '1')
                        end
                    end
                    call('BITFIELD', bitmap, unpack(set))
                end
                a, k = a + 3 + n, k + 1
            end
        end
    end
    a = a + 1

    -- Seen, log by log: when it expires (ms), fingerprints of pairs (user, page), 8 bytes each.  (See seen/layout.h.)  A
    -- log is due each time it passes a multiple of 128 KiB.
    local due = ''
    for _ = 1, ARGV[a] do
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
local direct = tonumber(ARGV[5])
local function each(f)
    local a, k = 5 + direct, direct
    for part = 1, ARGV[1] do
        f(part, k, a + 2)
        a, k = a + 2 + ARGV[a + 2], k + ARGV[a + 1]
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
        if first[KEYS[i]] ~= i or is[i] and now < tonumber(sub(is[i], 2, 14)) + 86400000 then
            taken[#taken + 1] = i
        end
    end
    held = held or #taken > 0
    for i = 1, held and 0 or direct do
        call('SET', KEYS[i], ARGV[5 + i], 'PX', 172800000)
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
