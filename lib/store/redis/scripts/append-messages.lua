#!lua
-- ConversationLog.append. Returns the last position and the time.
-- ARGV[1]: the session
-- ARGV[2]: the second argument of state_refusal
-- ARGV[3..]: the messages
-- @include common, contents, documents

local refusal = state_refusal(ARGV[1], ARGV[2])
if refusal then return refusal end
append_messages(ARGV[1], '', '', arguments_from(3))
return { 1, redis.call('LLEN', key('messages', ARGV[1])), now }
