-- Session rows and the indexes on them. A row holds its surfaces as a JSON array, and its metadata as fields that begin
-- with META: `m:` and the key as JSON, with the value as JSON.
--
-- Indexes are sorted sets. Indexes for `find` have the score -lastActivityAt, and the rank of the creation time with
-- the id as members, so their order is that of `find`. Indexes of slots contain the ids of the live sessions of a user,
-- a workspace and a surface; those of lifetimes contain ids. Both have a time as the score.
-- @include common

local META = 'm:'
-- The latest time that a date can have.
local LAST_TIME = 8.64e15
local RANK_LENGTH = 18

local function session_key(id)
  return key('session', id)
end

local function surfaces_of(session)
  return cjson.decode(session.surfaces)
end

local function encode_surfaces(surfaces)
  return #surfaces == 0 and '[]' or cjson.encode(surfaces)
end

local function holds(session, surface_id)
  for _, surface in ipairs(surfaces_of(session)) do
    if surface == surface_id then return true end
  end
  return false
end

-- The key of a user, a workspace and a surface; '' for a session without a surface.
local function slot_key(session, surface_id)
  return key('slot', session.userId .. SEPARATOR .. (session.workspaceId or '') .. SEPARATOR .. surface_id)
end

-- Returns the member of a session in the `find` indexes: its rank, which is lower for a newer session, and its id.
local function member_of(session)
  return string.format('%017.0f', LAST_TIME - session.createdAt) .. ':' .. session.id
end

local function id_of(member)
  return string.sub(member, RANK_LENGTH + 1)
end

-- Returns the `find` indexes that contain a session.
local function found_in(session)
  local found = { key('user', session.userId), key('state', session.state) }
  if session.workspaceId then found[#found + 1] = key('workspace', session.workspaceId) end
  if session.surfaces ~= '[]' then
    for _, surface in ipairs(surfaces_of(session)) do found[#found + 1] = key('surface', surface) end
  end
  return found
end

-- Returns every index that contains a session, as key -> score, and which of them use the rank.
local function places_of(session)
  local found, listed = {}, {}
  for _, at in ipairs(found_in(session)) do found[at] = -session.lastActivityAt end
  local surfaces = surfaces_of(session)
  if session.state == 'expired' then
    if session.stateChangedAt then listed[base .. 'expired'] = tonumber(session.stateChangedAt) end
  else
    local made = tonumber(session.createdAt)
    listed[base .. 'live'] = made
    for _, surface in ipairs(surfaces) do listed[slot_key(session, surface)] = made end
    if #surfaces == 0 then listed[slot_key(session, '')] = made end
  end
  return found, listed
end

local function move(before, after, before_member, after_member)
  for at in pairs(before) do
    if not after[at] or before_member ~= after_member then redis.call('ZREM', at, before_member) end
  end
  for at, score in pairs(after) do
    if before[at] ~= score or before_member ~= after_member then redis.call('ZADD', at, score, after_member) end
  end
end

-- Updates the indexes for a change of the row; nil for a row that did not exist or is deleted.
local function reindex(before, after)
  local found_before, listed_before, found_after, listed_after = {}, {}, {}, {}
  if before then found_before, listed_before = places_of(before) end
  if after then found_after, listed_after = places_of(after) end
  local id = (before or after).id
  move(found_before, found_after, before and member_of(before), after and member_of(after))
  move(listed_before, listed_after, id, id)
end

-- Changes a session that was read. Returns the row, the previous state, and whether it changed.
local function change_session(session, changes)
  local before = {}
  for field, value in pairs(session) do before[field] = value end
  if changes then
    changes.version = whole(session.version + 1)
    write(session_key(session.id), session, changes)
    reindex(before, session)
  end
  return { flat(session), before.state, changes and 1 or 0 }
end

-- Touches an active session whose row the client has, by its version. Returns nil if the row has changed since, or was
-- idle for longer than ttl_ms.
local function touch_known(id, known_version, ttl_ms)
  local at = session_key(id)
  local version, state, edited, last, user, workspace, surfaces, created = unpack(redis.call(
    'HMGET', at, 'version', 'state', 'edited', 'lastActivityAt', 'userId', 'workspaceId', 'surfaces', 'createdAt'))
  if version ~= known_version or state ~= 'active' or edited or tonumber(last) >= now then return nil end
  if ttl_ms and now - last > ttl_ms then return nil end
  redis.call('HSET', at, 'lastActivityAt', stamp, 'version', whole(version + 1))
  local session = {
    id = id, userId = user, state = state, workspaceId = workspace, surfaces = surfaces, createdAt = created,
  }
  local score, member = whole(-now), member_of(session)
  for _, index in ipairs(found_in(session)) do redis.call('ZADD', index, score, member) end
  return now
end

-- Touches a session. An active one that was idle for longer than ttl_ms counts as suspended.
local function touch_session(session, ttl_ms)
  local last = math.max(tonumber(session.lastActivityAt), now)
  if session.state == 'active' and ttl_ms and now - session.lastActivityAt > ttl_ms then session.state = 'suspended' end
  if session.state == 'active' then
    if last <= tonumber(session.lastActivityAt) then return change_session(session) end
    return change_session(session, { lastActivityAt = whole(last) })
  end
  return change_session(session, { state = 'active', stateChangedAt = now, lastActivityAt = last })
end

local function expire_session(session)
  return change_session(session, session.state ~= 'expired' and { state = 'expired', stateChangedAt = now } or nil)
end

local function detach(session, surface_id)
  if not holds(session, surface_id) then return change_session(session) end
  local kept = {}
  for _, surface in ipairs(surfaces_of(session)) do
    if surface ~= surface_id then kept[#kept + 1] = surface end
  end
  return change_session(session, { surfaces = encode_surfaces(kept) })
end

-- Returns the ids of the live sessions of the same user and workspace that have the surface, the newest first.
local function live_in_slot(session, surface_id)
  return redis.call('ZRANGE', slot_key(session, surface_id), 0, -1, 'REV')
end

-- Returns whether a session is past its lifetime in milliseconds; nil means unlimited.
local function is_overdue(created_at, max_ms)
  return max_ms and now - created_at > max_ms
end

-- Returns whether a sweep expires a live session because of its age or idle time. lifetime: max_ms, idle_ms,
-- active_idle_ms; nil means unlimited.
local function is_abandoned(id, lifetime)
  local state, created, last = unpack(redis.call('HMGET', session_key(id), 'state', 'createdAt', 'lastActivityAt'))
  local idle_ms = lifetime[state == 'active' and 'active_idle_ms' or 'idle_ms']
  return is_overdue(created, lifetime.max_ms) or (idle_ms and now - last > idle_ms)
end

-- Returns a refusal if another session holds one of the surfaces and has not abandoned it.
local function refuse_taken(session, surfaces, lifetime)
  for _, surface in ipairs(surfaces) do
    for _, holder in ipairs(live_in_slot(session, surface)) do
      if holder ~= session.id and not is_abandoned(holder, lifetime) then
        return refuse('SURFACE_CONFLICT', 'session_id', session.id, 'surface_id', surface, 'held_by', holder)
      end
    end
  end
end

-- Detaches the surfaces from other sessions. Returns the changed sessions, each once.
local function take_surfaces(session, surfaces)
  local losers, order = {}, {}
  for _, surface in ipairs(surfaces) do
    for _, holder in ipairs(live_in_slot(session, surface)) do
      if holder ~= session.id then
        if not losers[holder] then order[#order + 1] = holder end
        losers[holder] = losers[holder] or read(session_key(holder))
        detach(losers[holder], surface)
      end
    end
  end
  local replies = {}
  for i, holder in ipairs(order) do replies[i] = flat(losers[holder]) end
  return replies
end

local function not_found(session_id)
  return refuse('SESSION_NOT_FOUND', 'session_id', session_id)
end

local function session_over(session_id, attempted)
  return refuse('SESSION_STATE', 'session_id', session_id, 'state', 'expired', 'attempted', attempted)
end
