-- Finds the sessions of a filter, by the index that leaves the fewest candidates.
-- ARGV[1]: the filter as JSON, see toFilter of redis-sessions.ts
-- @include common, sessions

local filter = cjson.decode(ARGV[1])

-- Returns the indexes that together contain all matches.
local function sources()
  if filter.userId then return { key('user', filter.userId) } end
  if filter.surfaceId then return { key('surface', filter.surfaceId) } end
  if filter.workspaceId then return { key('workspace', filter.workspaceId) } end
  local all = {}
  for i, state in ipairs(filter.states or { 'created', 'active', 'suspended', 'expired' }) do
    all[i] = key('state', state)
  end
  return all
end

-- Checks the conditions that the index does not cover.
local function matches(member, index)
  local id = id_of(member)
  if filter.surfaceId and index ~= key('surface', filter.surfaceId) then
    if not redis.call('ZSCORE', key('surface', filter.surfaceId), member) then return false end
  end
  if filter.workspaceId and index ~= key('workspace', filter.workspaceId) then
    if not redis.call('ZSCORE', key('workspace', filter.workspaceId), member) then return false end
  end
  if filter.noWorkspace and redis.call('HEXISTS', session_key(id), 'workspaceId') == 1 then return false end
  if filter.states then
    for _, state in ipairs(filter.states) do
      if index == key('state', state) or redis.call('ZSCORE', key('state', state), member) then return true end
    end
    return false
  end
  return true
end

-- Returns whether all members of an index in the range match, so that they need not be checked.
local function is_exact(index)
  return not (filter.noWorkspace
    or (filter.surfaceId and index ~= key('surface', filter.surfaceId))
    or (filter.workspaceId and index ~= key('workspace', filter.workspaceId))
    or (filter.states and not string.find(index, base .. 'state:', 1, true)))
end

-- Scores are negative: the latest activity comes first.
local function bounds()
  local from, to = '-inf', '+inf'
  if filter.activeBefore then from = '(' .. string.format('%.0f', -filter.activeBefore) end
  if filter.activeAfter then to = '(' .. string.format('%.0f', -filter.activeAfter) end
  if filter.after then
    local active = -filter.after.active
    if not filter.activeBefore or active > -filter.activeBefore then from = string.format('%.0f', active) end
  end
  return from, to
end

-- Compares by bytes. Lua's own comparison uses the server's locale.
local function is_below(a, b)
  for i = 1, math.min(#a, #b) do
    local left, right = string.byte(a, i), string.byte(b, i)
    if left ~= right then return left < right end
  end
  return #a < #b
end

local function is_after(score, member)
  if not filter.after then return true end
  local active = -filter.after.active
  return score > active or (score == active and is_below(filter.after.member, member))
end

-- Returns the first and the last rank of the range of an index that can contain matches.
local function span(index)
  local from, to = bounds()
  local first = 0
  if string.sub(from, 1, 1) == '(' then
    first = redis.call('ZCOUNT', index, '-inf', string.sub(from, 2))
  elseif from ~= '-inf' then
    first = redis.call('ZCOUNT', index, '-inf', '(' .. from)
  end
  return first, redis.call('ZCOUNT', index, '-inf', to) - 1
end
