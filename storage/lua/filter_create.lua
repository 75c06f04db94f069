#!lua
-- filter_create.lua - make a named filter, unless there is one of that name.
-- KEYS: 1 the filter's hash    ARGV: 1 capacity  2 error  3 expansion  4 number of shards  5 number of the rules
-- Reply: 1: the filter is made; 0: there is one of that name already
local call = redis.call
local is = call('HMGET', KEYS[1], 'id', 'last')
if is[1] then return 0 end
local t = call('TIME')
local id = tonumber(t[1]) * 1000000 + tonumber(t[2])
if is[2] and tonumber(is[2]) >= id then id = tonumber(is[2]) + 1 end -- Redis's clock was set back, and ids must grow
-- The key is not deleted first: while its slot is moved to another server, Redis would refuse to make the key again.
call('HSET', KEYS[1], 'id', string.format('%.0f', id), 'capacity', ARGV[1], 'error', ARGV[2], 'expansion', ARGV[3],
     'shards', ARGV[4], 'rules', ARGV[5])
call('HDEL', KEYS[1], 'last')
call('PERSIST', KEYS[1])
return 1
