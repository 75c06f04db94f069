#!lua flags=allow-oom
-- forget_user.lua - delete a user's index, and the user's name at the index.  The caller clears the user's bits afterwards.
-- KEYS: 1 state  2 uid  3 the prefix ids:, which the number of a block of 128 indexes completes  4 gone
-- ARGV: 1 cfg  2 user  3 id that field users gets  4 site
-- Reply: the index; -1: the user has none; -2: nothing was done, because the settings differ
local call = redis.call
if call('HGET', KEYS[1], 'cfg') ~= ARGV[1] then return -2 end
local index = call('HGET', KEYS[2], ARGV[2])
if not index then return -1 end
local at = tonumber(index) % 128
call('HDEL', KEYS[2], ARGV[2])
call('LSET', KEYS[3] .. string.format('%.0f', (tonumber(index) - at) / 128), at, '') -- no user's name is ''
call('SADD', KEYS[4], ARGV[4] .. ':' .. index)
call('HSET', KEYS[1], 'users', ARGV[3]) -- the new id makes writers that remember the index ask again
return tonumber(index)
