#!lua flags=no-writes
-- StateStore.count.
-- ARGV[1]: the session
-- ARGV[2]: the prefix of the names of the documents
-- @include documents

local count = 0
for _, document in ipairs(documents_of(ARGV[1], ARGV[2])) do
  if is_live(document) then count = count + 1 end
end
return { 1, count }
