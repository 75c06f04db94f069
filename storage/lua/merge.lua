#!lua
-- merge.lua - one chunk of a pass: a bucket's content from its parts, for some pages of one site.
--
-- KEYS: 1 rolled  2 open  3 sum of the bucket (zset)  4.. sums of the parts (number: ARGV 8)
--       then, per page, the sketches' keys: uv and its parts, ip and its parts
-- ARGV: 1 cfg  2 pass  3 cur expected  4 number behind 'm' in cur  5 budget (us)  6 member for open ('' none)
--       7 'H' or 'Z': the parts' sums are hashes or zsets  8 number of parts  9 number of pages
--       then the pages; then per page the number of uv parts and of ip parts (both 0 for visits)
-- Reply: number of pages done, at least 1; -1 if the pass is not mine or not here
--
-- Sums are computed from the parts and set, never incremented; no zero entries.  After the budget is used up
-- the rest is left to the next chunk: the cursor counts pages.
local call = redis.call
local is = call('HMGET', KEYS[1], 'cfg', 'pass', 'cur')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[2] or is[3] ~= ARGV[3] then return -1 end

local function micros()
    local t = call('TIME')
    return tonumber(t[1]) * 1000000 + tonumber(t[2])
end
local deadline = micros() + tonumber(ARGV[5])
local parts, pages = tonumber(ARGV[8]), tonumber(ARGV[9])
local read = ARGV[7] == 'H' and 'HMGET' or 'ZMSCORE'

local sums = {}
for i = 1, pages do sums[i] = 0 end
for p = 1, parts do
    local values = call(read, KEYS[3 + p], unpack(ARGV, 10, 9 + pages))
    for i = 1, pages do
        if values[i] then sums[i] = sums[i] + tonumber(values[i]) end
    end
end

local k, a, done = 4 + parts, 10 + pages, 0
for _ = 1, pages do
    for _ = 1, 2 do
        local n = tonumber(ARGV[a])
        a = a + 1
        if n > 0 then
            if call('EXISTS', unpack(KEYS, k + 1, k + n)) > 0 then
                call('PFMERGE', unpack(KEYS, k, k + n))
            end
            k = k + 1 + n
        end
    end
    done = done + 1
    if micros() > deadline then break end
end

local set = {}
for i = 1, done do
    if sums[i] > 0 then
        set[#set + 1] = string.format('%.0f', sums[i])
        set[#set + 1] = ARGV[9 + i]
    end
end
if #set > 0 then call('ZADD', KEYS[3], unpack(set)) end
if ARGV[6] ~= '' then call('SADD', KEYS[2], ARGV[6]) end
call('HSET', KEYS[1], 'cur', 'm' .. string.format('%.0f', tonumber(ARGV[4]) + done))
return done
