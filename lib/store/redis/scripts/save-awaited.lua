#!lua
-- TurnLedger.saveAwaited.
-- ARGV[1]: the session
-- ARGV[2]: the turn
-- ARGV[3]: the fence of the hold
-- ARGV[4]: the awaited turns, as toAwaited returns them
-- @include lane

local _, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
redis.call('HSET', lane_key(ARGV[1]), 'awaited', ARGV[4])
return { 1 }
