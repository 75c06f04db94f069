#!lua flags=no-writes
-- read.lua - what a MULTI of read/proved_read.c reads, for a Redis whose memory is full: that one queues nothing any more.
-- KEYS: 1 state  2.. keys of one partition, those of one command behind those of the other
-- ARGV: per command: how many of the keys, how many words behind these, the command, the words
-- Reply: as EXEC's: {{cfg, st, ver, kept, over, fold}, data.., TIME}
local call = redis.call
local reply = {call('HMGET', KEYS[1], 'cfg', 'st', 'ver', 'kept', 'over', 'fold')}
local k = 2
local a = 1
while k <= #KEYS do
    local keys = tonumber(ARGV[a])
    local words = tonumber(ARGV[a + 1])
    local arguments = {unpack(KEYS, k, k + keys - 1)}
    for i = 1, words do
        arguments[keys + i] = ARGV[a + 2 + i]
    end
    reply[#reply + 1] = call(ARGV[a + 2], unpack(arguments))
    k = k + keys
    a = a + 3 + words
end
reply[#reply + 1] = call('TIME')
return reply
