#!lua
-- ARGV: session, what state_refusal takes, then what append_document takes.
-- @include common, documents

local refusal = state_refusal(ARGV[1], ARGV[2])
if refusal then return refusal end
local row = append_document(3)
return { 1, row and flat(row) or false }
