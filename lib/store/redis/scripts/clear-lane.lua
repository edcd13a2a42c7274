#!lua flags=allow-oom
-- TurnLedger.clear. Returns the ids of the cancelled turns.
-- ARGV[1]: the session
-- @include lane

return { 1, cancel_open_turns(ARGV[1]) }
