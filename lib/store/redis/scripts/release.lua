#!lua
-- TurnLedger.release.
-- ARGV[1]: the session
-- ARGV[2]: the turn
-- ARGV[3]: the fence of the hold
-- ARGV[4]: the delay in milliseconds
-- ARGV[5..]: the arguments of record_spending
-- @include common, lane, spending

local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local turn = read_turn(ARGV[2])
record_spending(lane, turn.id, 5, turn)
local reply = put_back(ARGV[1], lane, turn, { status = 'queued' })
-- Sets when the lane is due. Another worker may claim it earlier.
if turn.status == 'queued' then attend(ARGV[1], ARGV[4] == '0' and BEFORE_OTHERS or now + ARGV[4]) end
return reply
