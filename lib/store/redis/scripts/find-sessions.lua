#!lua flags=no-writes
-- SessionStoreAdapter.fetchMany.
-- ARGV[1]: the filter as JSON, see include/session-filter.lua, with its limit
-- @include sessions, session-filter

-- The least size of a page after one without matches, which are then rare.
local MIN_PAGE = 100

local limit = filter.limit
local found = {}
for _, index in ipairs(sources()) do
  local offset, last = span(index)
  local of_index, size = 0, limit
  while of_index < limit and offset <= last do
    local before, stop = of_index, math.min(offset + size - 1, last)
    local page = redis.call('ZRANGE', index, offset, stop, 'WITHSCORES')
    for i = 1, #page, 2 do
      local member, score = page[i], tonumber(page[i + 1])
      if of_index < limit and is_after(score, member) and matches(member, index) then
        of_index = of_index + 1
        found[#found + 1] = { score = score, member = member }
      end
    end
    offset = stop + 1
    if of_index == before then size = math.max(limit, MIN_PAGE) end
  end
end
table.sort(found, function(a, b)
  if a.score ~= b.score then return a.score < b.score end
  return is_below(a.member, b.member)
end)
local sessions = {}
for i = 1, math.min(limit, #found) do sessions[i] = redis.call('HGETALL', session_key(id_of(found[i].member))) end
return { 1, sessions }
