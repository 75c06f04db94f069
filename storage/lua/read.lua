#!lua flags=no-writes
-- read.lua - what a MULTI of count.c reads, for a Redis whose memory is full: that one queues nothing any more.
-- KEYS: 1 rolled  2.. keys of one partition
-- ARGV: 'MGET' alone; or per key 'HMGET' or 'ZMSCORE', then the pages
-- Reply: as EXEC's: {{cfg, st, ver, kept, over}, data.., TIME}
local call = redis.call
local reply = {call('HMGET', KEYS[1], 'cfg', 'st', 'ver', 'kept', 'over')}
if ARGV[1] == 'MGET' then
    reply[2] = call('MGET', unpack(KEYS, 2))
else
    local n = #KEYS - 1
    for i = 1, n do
        reply[1 + i] = call(ARGV[i], KEYS[1 + i], unpack(ARGV, n + 1))
    end
end
reply[#reply + 1] = call('TIME')
return reply
