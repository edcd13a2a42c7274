#!lua flags=allow-oom
-- StateStore.get as an access.
-- ARGV[1]: the document
-- ARGV[2]: the time to live in milliseconds, or ''
-- @include common, documents

local row = live_document(ARGV[1])
return { 1, row and flat(write_document(ARGV[1], row, {}, tonumber(ARGV[2]))) or false }
