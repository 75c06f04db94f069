-- events.lua - POST /events in nginx: decode, check a little, five commands an event in one pipeline a request
local cjson = require "cjson.safe"
local redis = require "nginx.redis"

ngx.req.read_body()
local body = cjson.decode(ngx.req.get_body_data() or "")
if type(body) ~= "table" then
    return ngx.exit(400)
end
local events = body[1] and body or {body}
local red = redis:new()
red:set_timeout(10000)
if not red:connect("unix:" .. ngx.var.redis_socket) then
    return ngx.exit(503)
end
local minute = os.date("!m%Y%m%d%H%M", ngx.time())
red:init_pipeline(5 * #events)
for i = 1, #events do
    local event = events[i]
    local page, user, ip = event.page, event.user, event.ip
    if type(page) ~= "string" or type(user) ~= "string" or type(ip) ~= "string" then
        return ngx.exit(422)
    end
    red:pfadd("uv:" .. minute .. ":" .. page, user)
    red:pfadd("uv:" .. minute .. ":", user)
    red:pfadd("ip:" .. minute .. ":" .. page, ip)
    red:pfadd("ip:" .. minute .. ":", ip)
    red:hincrby("pv:" .. minute, page, 1)
end
local replies = red:commit_pipeline()
if not replies then
    return ngx.exit(503)
end
for i = 1, #replies do
    if type(replies[i]) == "table" then -- {false, error}
        return ngx.exit(503)
    end
end
red:set_keepalive(60000, 256)
local answer = '{"accepted":' .. #events .. ',"rejected":0,"errors":[]}'
ngx.status = 202
ngx.header["Content-Type"] = "application/json"
ngx.header["Content-Length"] = #answer
ngx.print(answer)
