#!lua flags=allow-oom
-- Gives the ids of the turns that it cancelled.
-- @include lane

return { 1, cancel_open_turns(ARGV[1]) }
