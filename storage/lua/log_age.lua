#!lua flags=no-writes
-- log_age.lua - tell for how long an entry of a log has waited to be counted; if the entry is gone, the next one.
-- KEYS: 1 log    ARGV: 1 number of the entry
-- Reply: milliseconds since the entry arrived, by Redis's clock; -1: there is no such entry, or its head cannot be read
--
-- This is a script because an entry may be large and only its head is wanted.  The head is the field "h": a byte 2, and the
-- time of arrival as eight bytes of milliseconds.
local entry = redis.call('XRANGE', KEYS[1], ARGV[1] .. '-0', '+', 'COUNT', 1)[1]
local head = entry and entry[2][1] == 'h' and entry[2][2]
if not head or #head ~= 9 or head:byte(1) ~= 2 then return -1 end
local t = redis.call('TIME')
return t[1] * 1000 + math.floor(t[2] / 1000) - struct.unpack('<I8', head, 2)
