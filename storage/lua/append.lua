#!lua
-- append.lua - append an entry to a log, once, and set the records of its requests' keys: storage/log/PROTOCOL.md, "Append".
-- KEYS: 1 heads  2 log  3.. the record of each request with a key
-- ARGV: 1 id of the log  2 number of the entry  3 era  4 '1': append although earlier entries are missing  5 head of the entry
--       6 chunks of the requests without a key  7.. for each request with a key: record, how long the record lives (ms), chunk
-- Reply: code, Redis's time (s, us), and for each request with a key its record; '' if this very call has written the record.
--
-- | code | what it means |
-- |---|---|
-- | 0 OK | the entry is appended |
-- | 1 DUP | the entry was appended before; only the head's time is set, so that a WAIT behind this call has a write to wait for |
-- | 2 GAP | an earlier entry is missing: nothing was done |
-- | 3 GONE | the log was closed, or the data is gone: nothing was done |
local call = redis.call
local t = call('TIME')
local reply = {0, tonumber(t[1]), tonumber(t[2])}
local n = tonumber(ARGV[2])
local head = call('HGET', KEYS[1], ARGV[1])
if not head then
    reply[1] = 3
    return reply
end
local last = tonumber(string.match(head, '^%d+'))
if n <= last then
    reply[1] = 1
    local rest = string.match(head, '^%d+ %S+ ')
    call('HSET', KEYS[1], ARGV[1], string.format('%s%.0f', rest, t[1] * 1000 + math.floor(t[2] / 1000)))
    for i = 3, #KEYS do reply[i + 1] = call('GET', KEYS[i]) or '' end
    return reply
end
if n > last + 1 and ARGV[4] ~= '1' then
    reply[1] = 2
    return reply
end
local fields = {'h', ARGV[5], 'p', ARGV[6]}
for i = 3, #KEYS do
    local a = 3 * i - 2
    if call('SET', KEYS[i], ARGV[a], 'NX', 'PX', ARGV[a + 1]) then
        fields[#fields + 1], fields[#fields + 2] = 'k', ARGV[a + 2]
        reply[i + 1] = ''
    else
        local record = call('GET', KEYS[i])
        if record == ARGV[a] then -- the record is of this request: an earlier run broke off behind its SET
            fields[#fields + 1], fields[#fields + 2] = 'k', ARGV[a + 2]
        end
        reply[i + 1] = record
    end
end
local added = redis.pcall('XADD', KEYS[2], ARGV[2] .. '-0', unpack(fields))
-- The log has that number and its head has not: an earlier run broke off behind its XADD, and the entry is in the log.
if added.err and not string.find(added.err, 'equal or smaller', 1, true) then error(added) end
call('HSET', KEYS[1], ARGV[1], string.format('%s %s %.0f', ARGV[2], ARGV[3], t[1] * 1000 + math.floor(t[2] / 1000)))
return reply
