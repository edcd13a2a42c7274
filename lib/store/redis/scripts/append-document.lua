#!lua
-- StateStore.append.
-- ARGV[1]: the session
-- ARGV[2]: the second argument of state_refusal
-- ARGV[3..11]: the arguments of append_document
-- @include common, documents

local refusal = state_refusal(ARGV[1], ARGV[2])
if refusal then return refusal end
local row = append_document(3)
return { 1, row and flat(row) or false }
