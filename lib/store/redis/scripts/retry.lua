#!lua
-- TurnLedger.retry.
-- ARGV[1]: the session
-- ARGV[2]: the turn
-- ARGV[3]: the fence of the hold
-- ARGV[4]: the error as JSON
-- ARGV[5]: the delay in milliseconds
-- ARGV[6..]: the arguments of record_spending
-- @include common, lane, spending

local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local turn = read_turn(ARGV[2])
record_spending(lane, turn.id, 6, turn)
local changes = { status = 'queued', failures = (turn.failures or 0) + 1, error = ARGV[4], dueAt = now + ARGV[5] }
return put_back(ARGV[1], lane, turn, changes)
