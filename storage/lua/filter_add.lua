#!lua
-- filter_add.lua - add items, one after the other, to the newest layer of a filter's shard.
--
-- KEYS: 1 the shard's hash  2.. strings of the newest layer
-- ARGV: 1 id  2 layers expected  3 number of the newest  4 its capacity  5 '1' if it may grow  6 number of items (n)
--       7 bits of a string, 0 if all are there  8 bits that an item has in a string: all, or where strings are cut 1
--       (then an item may come several times)  then, string by string: number of the string from 1, number of items, and of
--       each, as they were given: its number from 1, bits
-- Reply: {code, text}: 0 DONE, 1 GROWN: text has a digit an item: 0 was there, 1 was new, 2 refused;  2 STALE: text is
--        the number of layers;  3 GONE
--        Fewer digits than items: GROWN stops at the first item that needs a layer more, DONE at the first that needs
--        a second new string.
--
-- A string is made as long as it will be, one a script: zeros are what holds Redis longest here, and a string that grows
-- is copied.
-- Older layers never change, so the caller has looked there before: an item that is not in them and not here is
-- new.  A shard that does not exist has one layer, an empty one.
local call = redis.call
local id, layer = ARGV[1], ARGV[3]
local is = call('HMGET', KEYS[1], 'id', 'n', 'drop', 'last', layer)
if is[1] ~= id or is[3] then
    if is[1] or is[4] and tonumber(is[4]) >= tonumber(id) then return {3, ''} end
    call('DEL', KEYS[1])
    call('HSET', KEYS[1], 'id', id, 'n', 1)
    is = {id, '1', false, false, '0'}
end
if is[2] ~= ARGV[2] then return {2, is[2]} end
local size, capacity, n = tonumber(is[5] or '0'), tonumber(ARGV[4]), tonumber(ARGV[6])
local length, k, before, answers, grown = tonumber(ARGV[7]), tonumber(ARGV[8]), size, {}, false

-- Is the string there?
local full, made = {}, false
local function there(number)
    if length > 0 and not full[number] then
        local key = KEYS[1 + number]
        if call('STRLEN', key) * 8 < length then
            if made then return false end
            call('SETBIT', key, length - 1, 0)
            made = true
        end
        full[number] = true
    end
    return true
end

-- What to do with each string: f(number, where its first item is in ARGV, and its last); as long as it returns true.
local function strings(f)
    local a = 9
    while ARGV[a] do
        local last = a + 2 + (ARGV[a + 1] - 1) * (k + 1)
        if not f(ARGV[a], a + 2, last) then return false end
        a = last + k + 1
    end
    return true
end

-- An item a command, or of cut strings 7 bits: Redis keeps 32 words at hand from one command of a script to the next, the
-- others cost it an allocation each.  A string's bits are set in the order of the items, so each finds what it would if
-- the items came one by one.
local function all_at_once()
    local set, items, step = {}, k > 1 and 1 or 7, k + 1
    for i = 4, 4 * k * items, 4 do set[i - 3], set[i - 2], set[i] = 'SET', 'u1', '1' end
    for item = 1, n do answers[item] = '0' end
    strings(function(number, first, last)
        local key = KEYS[1 + number]
        for from = first, last, items * step do
            local to, bits, at = math.min(from + (items - 1) * step, last), 0, 0
            for a = from, to, step do
                for i = 1, k do
                    bits = bits + 4
                    set[bits - 1] = ARGV[a + i]
                end
            end
            local was = call('BITFIELD', key, unpack(set, 1, bits))
            for a = from, to, step do
                for i = at + 1, at + k do
                    if was[i] == 0 then
                        local item = tonumber(ARGV[a])
                        if answers[item] == '0' then answers[item], size = '1', size + 1 end
                        break
                    end
                end
                at = at + k
            end
        end
        return true
    end)
end

-- Some may find no room, or no string.
local function one_by_one()
    local bits_of = {}
    for item = 1, n do bits_of[item] = {} end
    strings(function(number, first, last)
        for a = first, last, k + 1 do
            local bits = bits_of[tonumber(ARGV[a])]
            for i = a + 1, a + k do
                bits[#bits + 1] = number
                bits[#bits + 1] = ARGV[i]
            end
        end
        return true
    end)
    for item = 1, n do
        local bits, room, new = bits_of[item], size < capacity, false
        for i = 1, room and #bits or 0, 2 do
            if not there(bits[i]) then return end
        end
        for i = 1, #bits, 2 do
            local key = KEYS[1 + bits[i]]
            if room then
                new = call('SETBIT', key, bits[i + 1], 1) == 0 or new
            elseif call('GETBIT', key, bits[i + 1]) == 0 then
                new = true
                break
            end
        end
        if not new then
            answers[item] = '0'
        elseif room then
            answers[item], size = '1', size + 1
        elseif ARGV[5] == '1' then
            grown = true
            return
        else
            answers[item] = '2'
        end
    end
end

if size + n <= capacity and strings(there) then all_at_once() else one_by_one() end
if size > before then call('HSET', KEYS[1], layer, string.format('%.0f', size)) end
if grown then call('HINCRBY', KEYS[1], 'n', 1) end
return {grown and 1 or 0, table.concat(answers)}
