#!lua flags=no-writes
-- StateStore.namespaces. Skips from namespace to namespace, without reading their documents.
-- ARGV[1]: the session
-- @include common, documents

local at, from, found = key('documents', ARGV[1]), '-', {}
while true do
  local document = redis.call('ZRANGE', at, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not document then return { 1, found } end
  local namespace = owners_of(document)
  found[#found + 1] = namespace
  local _, beyond = bounds_of(namespace .. SEPARATOR)
  from = beyond
end
