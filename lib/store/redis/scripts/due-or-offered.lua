#!lua
-- TurnLedger.due with includeOffered: due and offered lanes, those that wait longest first.
-- ARGV[1]: the maximum number of lanes
-- @include common, lane, offers

if mode_of_all() == 'paused' then return { 1, {} } end
-- The maximum number of lanes per call, so that other calls do not wait long. The others are offered when due.
local MOST_LANES = 10000

local until_time = whole(now + MAX_OFFER_BACKOFF_MS)
local lanes = redis.call('ZRANGE', base .. 'due', '-inf', until_time, 'BYSCORE', 'LIMIT', 0, MOST_LANES, 'WITHSCORES')
local waiting = {}
for i = 1, #lanes, 2 do
  local lane = idle_lane(lanes[i], lanes[i + 1])
  if lane and (lane.offers > 0 or tonumber(lanes[i + 1]) <= now) then waiting[#waiting + 1] = lane end
end
table.sort(waiting, function(a, b) return tonumber(a.first_at) < tonumber(b.first_at) end)
local found = {}
for i = 1, math.min(#waiting, tonumber(ARGV[1])) do found[i] = offer(waiting[i]) end
return { 1, found }
