#!lua flags=allow-oom
-- ARGV: document, ttlMs or ''.
-- @include common, documents

local row = live_document(ARGV[1])
return { 1, row and flat(write_document(ARGV[1], row, {}, tonumber(ARGV[2]))) or false }
