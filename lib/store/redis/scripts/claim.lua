#!lua
-- TurnLedger.claim. Returns the claim or false, the lost turn with its holder or false, and 1 for a suspect that
-- the claim does not accept.
-- ARGV[1]: the session
-- ARGV[2..5]: the arguments of claim_from
-- @include attempt

local claimed, lost, is_suspect = claim_lane(ARGV[1], claim_from(2))
return { 1, claimed, lost, is_suspect and 1 or 0 }
