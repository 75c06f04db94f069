#!lua flags=no-writes
-- read.lua - read what a MULTI of read/proved_read.c reads, where Redis's memory is full and MULTI queues no commands.
-- KEYS: 1 state  2.. keys of one partition: those of the first command, then those of the second, and so on
-- ARGV: for each command: number of its keys, number of the words behind its keys, its name, the words
-- Reply: that of EXEC: {{cfg, st, ver, kept, over, fold}, the replies to the commands, TIME}
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
