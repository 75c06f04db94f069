#!lua
-- filter_add.lua - add items, one after the other, to the newest layer of a filter's shard.
--
-- KEYS: 1 the shard's hash  2.. strings of the newest layer, as many as the items need
-- ARGV: 1 id of the filter  2 number of layers expected  3 number of the newest layer, from 0  4 capacity of that layer (items)
--       5 '1': the filter may grow  6 bits of an item (k)  7 number of items  8 bits of a string; 0: all strings are there
--       9.. for each item: the number of its string, from 1, and the k numbers of its bits
-- Reply: {code, text}
--       code      text
--       0 DONE    a digit for each item.  0: the item was there; 1: the item was new; 2: the item was refused.  Where there
--                 are fewer digits than items, the script has stopped at the first item that needs a second new string
--       1 GROWN   the same digits; the script has stopped at the first item that needs one more layer
--       2 STALE   the number of layers, which is not the expected one; nothing was done
--       3 GONE    '': nothing was done, because the filter was deleted, or a later filter has its name
--
-- A new string gets its whole length at once, because a string that grows is copied.  A script makes one string at the
-- most, because writing the zeros holds Redis up longer than all else here.  An item is one BITFIELD.
-- Older layers never change.  The caller has looked for the items there, so an item that is not in the newest layer is new.
-- A shard that does not exist, or belongs to an earlier filter of the name, counts as one layer that is empty.
local call = redis.call
local id, layer, k = ARGV[1], ARGV[3], tonumber(ARGV[6])
local is = call('HMGET', KEYS[1], 'id', 'n', 'drop', 'last', layer)
if is[1] ~= id or is[3] then
    local latest = is[1] or is[4]
    if latest and tonumber(latest) >= tonumber(id) then return {3, ''} end
    -- Ids only grow, so a lesser id is left of an earlier filter: an add beside the deletion of the site makes such a shard.
    -- The key is not deleted first: while its slot is moved to another server, Redis would refuse to make the key again.
    call('HSET', KEYS[1], 'id', id, 'n', 1)
    for _, field in ipairs(call('HKEYS', KEYS[1])) do
        if field ~= 'id' and field ~= 'n' then call('HDEL', KEYS[1], field) end
    end
    call('PERSIST', KEYS[1])
    is = {id, '1', false, false, '0'}
end
if is[2] ~= ARGV[2] then return {2, is[2]} end
local size, capacity = tonumber(is[5] or '0'), tonumber(ARGV[4])
local before = size

local set, get = {}, {}
for i = 1, k do
    set[4 * i - 3], set[4 * i - 2], set[4 * i] = 'SET', 'u1', '1'
    get[3 * i - 2], get[3 * i - 1] = 'GET', 'u1'
end
local answers, a, grown, full, made, length = {}, 9, false, {}, false, tonumber(ARGV[8])
for item = 1, tonumber(ARGV[7]) do
    local number = ARGV[a]
    local key, bits = KEYS[1 + tonumber(number)], nil
    if size < capacity then
        if length > 0 and not full[number] then
            if call('STRLEN', key) * 8 < length then
                if made then break end
                call('SETBIT', key, length - 1, 0)
                made = true
            end
            full[number] = true
        end
        for i = 1, k do set[4 * i - 1] = ARGV[a + i] end
        bits = call('BITFIELD', key, unpack(set, 1, 4 * k))
    else
        for i = 1, k do get[3 * i] = ARGV[a + i] end
        bits = call('BITFIELD_RO', key, unpack(get, 1, 3 * k))
    end
    local new = false
    for i = 1, k do
        if bits[i] == 0 then
            new = true
            break
        end
    end
    if not new then
        answers[item] = '0'
    elseif size < capacity then
        answers[item], size = '1', size + 1
    elseif ARGV[5] == '1' then
        grown = true
        break
    else
        answers[item] = '2'
    end
    a = a + 1 + k
end
if size > before then call('HSET', KEYS[1], layer, string.format('%.0f', size)) end
if grown then call('HINCRBY', KEYS[1], 'n', 1) end
return {grown and 1 or 0, table.concat(answers)}
