#!lua flags=no-writes
-- StateStore.list. Returns each document with its name.
-- ARGV[1]: the session
-- ARGV[2]: the prefix of the names of the documents
-- ARGV[3]: the name after which to start, or ''
-- ARGV[4]: the maximum number of documents
-- @include common, documents

local at, after, limit = key('documents', ARGV[1]), ARGV[3], tonumber(ARGV[4])
local from, to = bounds_of(ARGV[2])
if after ~= '' then from = '(' .. after end
local found = {}
while #found < limit do
  local documents = redis.call('ZRANGE', at, from, to, 'BYLEX', 'LIMIT', 0, limit)
  for _, document in ipairs(documents) do
    local row = #found < limit and live_document(document)
    if row then found[#found + 1] = { document, flat(row) } end
  end
  if #documents < limit then break end
  from = '(' .. documents[limit]
end
return { 1, found }
