#!lua flags=no-writes
-- @include lane-view

return { 1, lane_view(ARGV[1]) }
