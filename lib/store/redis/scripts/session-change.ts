import { CONTENTS } from './contents.js';
import { LANE } from './lane.js';
import { script, thrifty } from './script.js';
import { SESSIONS } from './sessions.js';

/** ARGV: id, the TTL in milliseconds or '', the lifetime in milliseconds or ''. */
export const TOUCH_SESSION = script(
  'touch-session',
  [SESSIONS],
  /* lua */ `
local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
if session.state == 'expired' or is_overdue(session.createdAt, tonumber(ARGV[3])) then
  return session_over(session.id, 'touch')
end
return { 1, touch_session(session, tonumber(ARGV[2])) }
`,
);

/** ARGV: id, surface, policy, the most surfaces, what happens at that limit, lifetime as JSON. */
export const ATTACH_SURFACE = script(
  'attach-surface',
  [SESSIONS],
  /* lua */ `
local session, surface_id, policy, max_surfaces = read(session_key(ARGV[1])), ARGV[2], ARGV[3], tonumber(ARGV[4])
local on_limit, lifetime = ARGV[5], cjson.decode(ARGV[6])
if not session then return not_found(ARGV[1]) end
if session.state == 'expired' or is_overdue(session.createdAt, lifetime.max_ms) then
  return session_over(session.id, 'attachSurface')
end
if holds(session, surface_id) then return { 1, change_session(session), {}, {} } end
local surfaces = surfaces_of(session)
if #surfaces >= max_surfaces and on_limit == 'reject' then
  return refuse('SURFACE_LIMIT', 'session_id', session.id, 'limit', max_surfaces)
end
if policy == 'reject' then
  local taken = refuse_taken(session, { surface_id }, lifetime)
  if taken then return taken end
end
local detached = {}
while #surfaces >= max_surfaces do detached[#detached + 1] = table.remove(surfaces, 1) end
local moved_from = policy ~= 'share' and take_surfaces(session, { surface_id }) or {}
surfaces[#surfaces + 1] = surface_id
return { 1, change_session(session, { surfaces = encode_surfaces(surfaces) }), moved_from, detached }
`,
);

export const DETACH_SURFACE = script(
  'detach-surface',
  [SESSIONS],
  /* lua */ `
local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
return { 1, detach(session, ARGV[2]) }
`,
);

export const EXPIRE_SESSION = thrifty(
  'expire-session',
  [CONTENTS, LANE, SESSIONS],
  /* lua */ `
local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
-- A repeat as well: a running turn may have been put back into the queue since.
cancel_open_turns(session.id)
return { 1, expire_session(session) }
`,
);

export const REVOKE_SESSION = thrifty(
  'revoke-session',
  [CONTENTS, LANE, SESSIONS],
  /* lua */ `
local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
cancel_open_turns(session.id)
-- All that is left is what runs.
local running = redis.call('HGET', lane_key(session.id), 'head')
if running then mark_turn(read_turn(running), 'cancel') end
return { 1, expire_session(session) }
`,
);

/** ARGV: id, the most bytes, then fields and values; '' takes a field away. */
export const MERGE_METADATA = script(
  'merge-metadata',
  [SESSIONS],
  /* lua */ `
local session, max_bytes = read(session_key(ARGV[1])), tonumber(ARGV[2])
if not session then return not_found(ARGV[1]) end
local changes
for i = 3, #ARGV, 2 do
  local field, value = ARGV[i], ARGV[i + 1] ~= '' and ARGV[i + 1] or nil
  if session[field] ~= value then
    changes = changes or {}
    changes[field] = value or false
  end
end
-- As plain JSON: braces, and a colon and a comma with each key and value.
local bytes = 1
local function count(field, value)
  if string.sub(field, 1, #META) == META then bytes = bytes + #field - #META + #value + 2 end
end
for field, value in pairs(session) do
  if not changes or changes[field] == nil then count(field, value) end
end
for field, value in pairs(changes or {}) do
  if value then count(field, value) end
end
if bytes > max_bytes then
  local subject = 'The metadata of session ' .. session.id
  return refuse('TOO_LARGE', 'subject', subject, 'bytes', math.max(bytes, 2), 'max_bytes', max_bytes)
end
return { 1, change_session(session, changes) }
`,
);

/**
 * ARGV: id, whether metadata is replaced, then fields and values; '' takes a field away. Looks at nothing else: also not at the version,
 * so that from now on it does not tell whether somebody knows the row.
 */
export const UPDATE_SESSION = script(
  'update-session',
  [SESSIONS],
  /* lua */ `
local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
local before, changes = {}, { edited = '1' }
for field, value in pairs(session) do
  before[field] = value
  if ARGV[2] == '1' and string.sub(field, 1, #META) == META then changes[field] = false end
end
for i = 3, #ARGV, 2 do changes[ARGV[i]] = ARGV[i + 1] ~= '' and ARGV[i + 1] end
write(session_key(session.id), session, changes)
reindex(before, session)
return { 1, flat(session) }
`,
);
