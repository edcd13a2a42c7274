#!lua flags=no-writes
-- ARGV: the bound of the ids as ZRANGE BYLEX takes it, limit.
-- @include common, lane, lane-view

local views = {}
for i, session_id in ipairs(redis.call('ZRANGE', base .. 'lanes', ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])) do
  views[i] = lane_view(session_id)
end
return { 1, mode_of_all() or 'open', views }
