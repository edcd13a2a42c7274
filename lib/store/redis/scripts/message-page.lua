#!lua flags=no-writes
-- ConversationLog.page.
-- ARGV[1]: the session
-- ARGV[2]: the position after which to start
-- ARGV[3]: the maximum number of messages
-- @include common

local after, limit = ARGV[2], tonumber(ARGV[3])
return { 1, limit > 0 and redis.call('LRANGE', key('messages', ARGV[1]), after, after + limit - 1) or {} }
