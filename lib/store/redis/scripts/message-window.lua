#!lua flags=no-writes
-- ConversationLog.window.
-- ARGV[1]: the session
-- ARGV[2]: the number of last messages
-- @include contents

return { 1, read_window(ARGV[1], tonumber(ARGV[2])) }
