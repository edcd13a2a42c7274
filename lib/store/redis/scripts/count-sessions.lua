#!lua flags=no-writes
-- AtomicSessionStoreAdapter.count.
-- ARGV[1]: the filter as JSON, see include/session-filter.lua
-- @include session-filter

local from, to = bounds()
local total = 0
for _, index in ipairs(sources()) do
  if is_exact(index) then
    total = total + redis.call('ZCOUNT', index, from, to)
  else
    for _, member in ipairs(redis.call('ZRANGE', index, from, to, 'BYSCORE')) do
      if matches(member, index) then total = total + 1 end
    end
  end
end
return { 1, total }
