#!lua flags=allow-oom
-- forget_user.lua - a user has no index any more, and its index no user.  Its bits are cleared afterwards.
-- KEYS: 1 state  2 uid  3 ids: (the block's number follows)  4 gone
-- ARGV: 1 cfg  2 user  3 site  4 generation of users
-- Reply: the index, -1 if there was none, -2 if the settings differ
local call = redis.call
if call('HGET', KEYS[1], 'cfg') ~= ARGV[1] then return -2 end
local index = call('HGET', KEYS[2], ARGV[2])
if not index then return -1 end
local at = tonumber(index) % 128
call('HDEL', KEYS[2], ARGV[2])
call('LSET', KEYS[3] .. string.format('%.0f', (tonumber(index) - at) / 128), at, '') -- no user is empty
call('SADD', KEYS[4], ARGV[3] .. ':' .. index)
call('HSET', KEYS[1], 'users', ARGV[4]) -- who remembers the index must ask again
return tonumber(index)
