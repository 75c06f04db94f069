#!lua flags=allow-oom
-- fold.lua - a transaction of a fold, where Redis's memory is full: MULTI .. EXEC is refused then (fold/transaction.c).
-- KEYS: heads  then the states of the partitions
-- ARGV: number of logs, and their ids; for each state: number of fields, and for each field its name and what it is expected to
--       be ("=" and the value; "-": there is none); then the commands: for each the number of its words, and these
-- Answers: 0 if a log has no head, or a state is another one, and nothing was done; else the answers of the commands.
local call, unpack = redis.call, unpack
local at = 0
local function take()
    at = at + 1
    return ARGV[at]
end
for _ = 1, tonumber(take()) do
    if call('HEXISTS', KEYS[1], take()) == 0 then return 0 end
end
for k = 2, #KEYS do
    local names, expected = {}, {}
    for i = 1, tonumber(take()) do names[i], expected[i] = take(), take() end
    for i, is in ipairs(call('HMGET', KEYS[k], unpack(names))) do
        if (is and '=' .. is or '-') ~= expected[i] then return 0 end
    end
end
local look = at -- unpack() breaks off at 8000 words, when what stands before is done
while look < #ARGV do
    local n = tonumber(ARGV[look + 1])
    if n > 7900 then return redis.error_reply('ERR a command of a fold has ' .. n .. ' words') end
    look = look + 1 + n
end
local replies = {}
while at < #ARGV do
    local n = tonumber(take())
    replies[#replies + 1] = redis.pcall(unpack(ARGV, at + 1, at + n)) -- as EXEC: the others are carried out
    at = at + n
end
return replies
