#!lua flags=no-writes
-- TurnEventLog.last.
-- ARGV[1]: the turn
-- @include turn-events

local last = last_batch(ARGV[1])
return { 1, last and last_offset(last) or 0 }
