#!lua
-- TurnLedger.due: lanes to notify, the most overdue first.
-- ARGV[1]: the maximum number of lanes
-- @include common, lane, offers

if mode_of_all() == 'paused' then return { 1, {} } end
-- The maximum number of pages of running lanes per call, so that other calls do not wait long.
local MOST_PAGES = 10

local limit, found = tonumber(ARGV[1]), {}
for _ = 1, MOST_PAGES do
  local page = redis.call('ZRANGE', base .. 'due', '-inf', stamp, 'BYSCORE', 'LIMIT', 0, limit - #found, 'WITHSCORES')
  for i = 1, #page, 2 do
    local lane = idle_lane(page[i], page[i + 1])
    if lane then found[#found + 1] = offer(lane) end
  end
  if #page == 0 or #found == limit then break end
end
return { 1, found }
