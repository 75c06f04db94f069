#!lua
-- close_log.lua - close a log of which everything is counted, unless its writer was heard of meanwhile.  Compare and delete.
-- In the same step the closing is counted: see tests/model/answers.pml.
-- KEYS: 1 heads  2 log    ARGV: 1 id of the log  2 its head as it was when the cursors were read
-- Reply: 1 closed, 0 its head is another one now
--
-- Not where memory is full: a writer that cannot append there is not dead.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HINCRBY', KEYS[1], 'closed', 1)
redis.call('UNLINK', KEYS[2])
return 1
