import { CONTENTS } from './contents.js';
import { DOCUMENTS } from './documents.js';
import { LANE } from './lane.js';
import { thrifty } from './script.js';
import { REMOVAL } from './session-removal.js';
import { SESSIONS } from './sessions.js';

/** Members of an index of states that were last active before a time, the longest idle first, a page at a time. */
const IDLE = /* lua */ `
local function idle_members(state, active_before, offset, limit)
  local score = string.format('(%.0f', -active_before)
  return redis.call('ZRANGE', key('state', state), '+inf', score, 'BYSCORE', 'REV', 'LIMIT', offset, limit)
end
`;

export const SUSPEND_STALE = thrifty(
  'suspend-stale',
  [SESSIONS, IDLE],
  /* lua */ `
local suspended = {}
for i, member in ipairs(idle_members('active', now - ARGV[1], 0, ARGV[2])) do
  local session = read(session_key(id_of(member)))
  suspended[i] = change_session(session, { state = 'suspended', stateChangedAt = now })[1]
end
return { 1, suspended }
`,
);

/** ARGV: idleMs or '', maxMs or '', limit. */
export const EXPIRE_STALE = thrifty(
  'expire-stale',
  [CONTENTS, LANE, SESSIONS, IDLE],
  /* lua */ `
local idle_ms, max_ms, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local changes = {}

-- Ends those that have no open turns; says how many of the page are left where they were.
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
`,
);

export const PURGE_EXPIRED = thrifty(
  'purge-expired',
  [CONTENTS, DOCUMENTS, LANE, SESSIONS, REMOVAL],
  /* lua */ `
local ids = redis.call('ZRANGE', base .. 'expired', '-inf', '(' .. now - ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do remove_session(id) end
return { 1, ids }
`,
);
