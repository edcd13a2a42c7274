#!lua flags=allow-oom
-- StateStore.delete.
-- ARGV[1]: the document
-- @include documents

local was_live = live_document(ARGV[1]) and 1 or 0
remove_document(ARGV[1])
return { 1, was_live }
