#!lua flags=allow-oom
-- TurnLedger.renew. Returns the cancel mode, or false.
-- ARGV[1]: the session
-- ARGV[2]: the turn
-- ARGV[3]: the fence of the hold
-- ARGV[4]: leaseMs
-- @include common, lane

local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local lease_until = whole(now + ARGV[4])
redis.call('HSET', lane_key(ARGV[1]), 'leaseUntil', lease_until)
if lane.offers then redis.call('HDEL', lane_key(ARGV[1]), 'offers', 'firstAttentionAt') end
attend(ARGV[1], lease_until)
return { 1, redis.call('HGET', turn_key(ARGV[2]), 'cancelMode') }
