#!lua flags=no-writes
-- ARGV: session, what the documents' names begin with.
-- @include documents

local count = 0
for _, document in ipairs(documents_of(ARGV[1], ARGV[2])) do
  if is_live(document) then count = count + 1 end
end
return { 1, count }
