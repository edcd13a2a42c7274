import { query } from './script.js';
import { SESSIONS } from './sessions.js';

/** The sessions that a filter (ARGV[1], as JSON) asks for, by the index that leaves the fewest. Needs SESSIONS. */
const FIND = /* lua */ `
local filter = cjson.decode(ARGV[1])

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

-- What the index does not answer.
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

-- By bytes: Lua's own comparison goes by the server's locale.
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

-- The places of an index between which its matches stand.
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
`;

export const FIND_SESSIONS = query(
  'find-sessions',
  [SESSIONS, FIND],
  /* lua */ `
local limit = filter.limit
local found = {}
for _, index in ipairs(sources()) do
  local offset, last = span(index)
  local of_index = 0
  while of_index < limit and offset <= last do
    local stop = math.min(offset + limit - 1, last)
    local page = redis.call('ZRANGE', index, offset, stop, 'WITHSCORES')
    for i = 1, #page, 2 do
      local member, score = page[i], tonumber(page[i + 1])
      if of_index < limit and is_after(score, member) and matches(member, index) then
        of_index = of_index + 1
        found[#found + 1] = { score = score, member = member }
      end
    end
    offset = stop + 1
  end
end
table.sort(found, function(a, b)
  if a.score ~= b.score then return a.score < b.score end
  return is_below(a.member, b.member)
end)
local sessions = {}
for i = 1, math.min(limit, #found) do sessions[i] = redis.call('HGETALL', session_key(id_of(found[i].member))) end
return { 1, sessions }
`,
);

export const COUNT_SESSIONS = query(
  'count-sessions',
  [SESSIONS, FIND],
  /* lua */ `
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
`,
);

export const GET_SESSION = query(
  'get-session',
  [SESSIONS],
  /* lua */ `
return { 1, redis.call('HGETALL', session_key(ARGV[1])) }
`,
);
