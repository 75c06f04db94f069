#!lua flags=no-writes
-- read_any.lua - what a MULTI of read/proved_read.c reads, for a Redis whose memory is full: that one queues nothing any more.
-- KEYS: 1 rolled  2.. keys of one partition
-- ARGV: per key: how many words, and these: a command, and what stands behind its key
-- Reply: as EXEC's: {{cfg, st, ver, kept, over}, data.., TIME}
local call = redis.call
local reply = {call('HMGET', KEYS[1], 'cfg', 'st', 'ver', 'kept', 'over')}
local a = 1
for k = 2, #KEYS do
    local n = tonumber(ARGV[a])
    reply[k] = call(ARGV[a + 1], KEYS[k], unpack(ARGV, a + 2, a + n))
    a = a + n + 1
end
reply[#reply + 1] = call('TIME')
return reply
