#!lua flags=no-writes
-- TurnLedger.lane.
-- ARGV[1]: the session
-- @include lane-view

return { 1, lane_view(ARGV[1]) }
