#!lua
-- TurnLedger.claim. ARGV: session, then what claim_from takes.
-- @include attempt

local claimed, lost, is_suspect = claim_lane(ARGV[1], claim_from(2))
return { 1, claimed, lost, is_suspect and 1 or 0 }
