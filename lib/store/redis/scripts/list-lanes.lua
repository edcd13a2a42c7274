#!lua flags=no-writes
-- TurnLedger.lanes.
-- ARGV[1]: the lower bound of the session ids, as ZRANGE BYLEX accepts it
-- ARGV[2]: the maximum number of lanes
-- @include common, lane, lane-view

local views = {}
for i, session_id in ipairs(redis.call('ZRANGE', base .. 'lanes', ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])) do
  views[i] = lane_view(session_id)
end
return { 1, mode_of_all() or 'open', views }
