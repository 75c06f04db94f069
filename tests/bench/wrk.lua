-- wrk.lua - single events for wrk:   wrk .. -s wrk.lua URL -- same|random|keyed|limit|webdis SEED [SHA MINUTE]
--
-- same: one request again and again.  random: pages log-uniform over 10,000, users uniform over a million, written
-- into a fixed text, so that a request costs wrk about half a microsecond more.  keyed: the same, each with an
-- Idempotency-Key of its own.  webdis: the same random events as an
-- EVALSHA of peers/event.lua each.
local json = '{"page":"/page/number/%07d","user":"user-%08d","ip":"10.1%02d.1%02d.1%02d",' ..
    '"ua":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120 Safari/537.36",' ..
    '"referrer":"https://example.com/start"}'
local head = 'POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n'
local floor, random, format = math.floor, math.random, string.format
local text
local threads = 0

function setup(thread) -- each has a Lua of its own
    threads = threads + 1
    thread:set('number', threads)
end

local function draw()
    local page, user = floor(10000 ^ random()), random(0, 999999)
    local ip = user * 7919 % 1000000
    return page, user, floor(ip / 10000), floor(ip / 100) % 100, ip % 100
end

function init(args)
    local kind = args[1]
    math.randomseed(tonumber(args[2]))
    if kind == 'webdis' then
        local m = args[4]
        local body = 'EVALSHA/' .. args[3] .. '/5/uv:m' .. m .. ':%%2Fpage%%2Fnumber%%2F%07d/uv:m' .. m .. ':/ip:m' .. m ..
            ':%%2Fpage%%2Fnumber%%2F%07d/ip:m' .. m .. ':/pv:m' .. m .. '/user-%08d/10.1%02d.1%02d.1%02d/%%2Fpage%%2Fnumber%%2F%07d'
        text = format(head, '/', #format(body, 0, 0, 0, 0, 0, 0, 0)) .. body
        request = function()
            local page, user, a, b, c = draw()
            return format(text, page, page, user, a, b, c, page)
        end
        return
    end
    text = format(head, '/events', #format(json, 0, 0, 0, 0, 0)) .. json
    if kind == 'limit' then -- a request for a limit, each for one of 10,000 keys, that is never reached
        local limit = '{"key":"user-%08d","algorithm":"funnel","limit":1000000,"period_s":1,"burst":1000000}'
        text = format(head, '/ratelimit', #format(limit, 0)) .. limit
        request = function() return format(text, random(0, 9999)) end
    elseif kind == 'keyed' then
        local n = 0
        text = text:gsub('\r\n\r\n', '\r\nIdempotency-Key: ' .. args[2] .. '-' .. number .. '-%%08d\r\n\r\n')
        request = function()
            n = n + 1
            return format(text, n, draw())
        end
        return
    end
    if kind == 'same' then
        local one = format(text, 367, 1234567, 92, 0, 17)
        request = function() return one end
    else
        request = function() return format(text, draw()) end
    end
end

function done(summary, latency)
    local e = summary.errors
    io.write(format('{"requests": %d, "events": %d, "seconds": %.6f, "rate": %.1f, "refused": %d, "lost": %d, ' ..
        '"p50_us": %d, "p99_us": %d, "max_us": %d}\n', summary.requests, summary.requests, summary.duration / 1e6,
        summary.requests / summary.duration * 1e6, e.status, e.connect + e.read + e.write + e.timeout,
        latency:percentile(50), latency:percentile(99), latency.max))
end
