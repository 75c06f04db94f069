#!lua flags=allow-oom
-- small_write.lua - a small write that a full Redis carries out, too, because it asks for work that frees memory.
-- KEYS: 1 the command's key
-- ARGV: 1 the command  2.. its words behind the key
-- Reply: the command's
return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))
