#!lua flags=no-writes
-- @include lane

local turn = read_turn(ARGV[1])
return { 1, turn and turn_reply(turn) or false }
