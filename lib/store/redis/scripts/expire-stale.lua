#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.expireStale.
-- ARGV[1]: idleMs, or ''
-- ARGV[2]: maxMs, or ''
-- ARGV[3]: the maximum number of sessions
-- @include common, lane, sessions, idle-sessions

local idle_ms, max_ms, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local changes = {}

-- Ends sessions without open turns. Returns the number of sessions of the page that stay.
local function expire_idle(ids)
  local left = 0
  for _, id in ipairs(ids) do
    if #changes >= limit or redis.call('HEXISTS', lane_key(id), 'head') == 1 then
      left = left + 1
    else
      changes[#changes + 1] = expire_session(read(session_key(id)))
    end
  end
  return left
end

local function expire_all(page)
  local offset = 0
  while #changes < limit do
    local ids = page(offset)
    if #ids == 0 then return end
    offset = offset + expire_idle(ids)
  end
end

if idle_ms then
  for _, state in ipairs({ 'suspended', 'created' }) do
    expire_all(function(offset)
      local ids = idle_members(state, now - idle_ms, offset, limit)
      for i, member in ipairs(ids) do ids[i] = id_of(member) end
      return ids
    end)
  end
end
if max_ms then
  expire_all(function(offset)
    return redis.call('ZRANGE', base .. 'live', '-inf', '(' .. now - max_ms, 'BYSCORE', 'LIMIT', offset, limit)
  end)
end
return { 1, changes }
