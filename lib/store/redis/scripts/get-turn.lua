#!lua flags=no-writes
-- TurnLedger.get.
-- ARGV[1]: the turn
-- @include lane

local turn = read_turn(ARGV[1])
return { 1, turn and turn_reply(turn) or false }
