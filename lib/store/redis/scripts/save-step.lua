#!lua
-- TurnLedger.saveStep. Returns the stored value of the step.
-- ARGV[1]: the session
-- ARGV[2]: the turn
-- ARGV[3]: the fence of the hold
-- ARGV[4]: the step, as stepText returns it
-- ARGV[5]: its value as JSON
-- ARGV[6..]: the arguments of record_spending
-- @include common, lane, spending

local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
record_spending(lane, ARGV[2], 6)
store_step(ARGV[2], ARGV[4], ARGV[5])
return { 1, redis.call('HGET', key('steps', ARGV[2]), ARGV[4]) }
