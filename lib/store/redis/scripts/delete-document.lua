#!lua flags=allow-oom
-- @include documents

local was_live = live_document(ARGV[1]) and 1 or 0
remove_document(ARGV[1])
return { 1, was_live }
