-- Checkpoints and messages, as turns and their own ports write them.
-- @include common

-- The checkpoints of one orchestrator in one session are a hash: by index the checkpoint as JSON, by time_of its time,
-- and the existing indices as `first` and `latest`.
local function checkpoints_key(orchestrator, session_id)
  return key('checkpoints', orchestrator .. SEPARATOR .. session_id)
end

local function time_of(index)
  return index .. ' at'
end

-- Returns the time and the JSON of a checkpoint.
local function read_checkpoint(at, index)
  local found = redis.call('HMGET', at, time_of(index), index)
  return found[1] and found
end

local function latest_checkpoint(orchestrator, session_id)
  local at = checkpoints_key(orchestrator, session_id)
  local latest = redis.call('HGET', at, 'latest')
  return latest and read_checkpoint(at, latest)
end

local function remove_checkpoints(orchestrator, session_id)
  redis.call('UNLINK', checkpoints_key(orchestrator, session_id))
  redis.call('ZREM', key('checkpointed', orchestrator), session_id)
  redis.call('SREM', key('orchestrators', session_id), orchestrator)
end

-- Returns the first and the latest index, or nil without checkpoints.
local function checkpoint_range(orchestrator, session_id)
  local range = redis.call('HMGET', checkpoints_key(orchestrator, session_id), 'first', 'latest')
  if range[1] then return tonumber(range[1]), tonumber(range[2]) end
end

-- Removes all but the latest `keep` checkpoints. Returns the number of removed checkpoints.
local function prune_checkpoints(orchestrator, session_id, keep, first, latest)
  local at = checkpoints_key(orchestrator, session_id)
  local kept_from = latest - keep + 1
  if kept_from <= first then return 0 end
  if keep <= 0 then
    remove_checkpoints(orchestrator, session_id)
  else
    for index = first, kept_from - 1 do redis.call('HDEL', at, index, time_of(index)) end
    redis.call('HSET', at, 'first', kept_from)
  end
  return kept_from - first
end

-- Appends a checkpoint. `first` is the first existing index, or nil without checkpoints.
local function append_checkpoint(orchestrator, session_id, index, text, keep, first)
  local at = checkpoints_key(orchestrator, session_id)
  redis.call('HSET', at, index, text, time_of(index), stamp, 'latest', index)
  if not first then
    redis.call('HSET', at, 'first', index)
    redis.call('ZADD', key('checkpointed', orchestrator), 0, session_id)
    redis.call('SADD', key('orchestrators', session_id), orchestrator)
  end
  if keep then prune_checkpoints(orchestrator, session_id, keep, first or tonumber(index), tonumber(index)) end
end

-- Messages are a list: index n has position n + 1. The set `conversed` contains the sessions with a list.
local function append_messages(session_id, turn_id, orchestrator, messages)
  if #messages == 0 then return end
  local head = stamp .. '\n' .. turn_id .. '\n' .. orchestrator .. '\n'
  local stamped = {}
  for i, message in ipairs(messages) do stamped[i] = head .. message end
  local last = call_with('RPUSH', key('messages', session_id), stamped)
  if last == #stamped then redis.call('ZADD', base .. 'conversed', 0, session_id) end
end

-- Removes the messages of a session. Returns their number.
local function remove_messages(session_id)
  local at = key('messages', session_id)
  local count = redis.call('LLEN', at)
  if count > 0 then
    redis.call('UNLINK', at)
    redis.call('ZREM', base .. 'conversed', session_id)
  end
  return count
end

-- Returns the last position, the last messages, and the first message if it is not among them; false if limit is 0.
local function read_window(session_id, limit)
  if limit <= 0 then return false end
  local at = key('messages', session_id)
  local last = redis.call('LLEN', at)
  return { last, redis.call('LRANGE', at, -limit, -1), last > limit and redis.call('LINDEX', at, 0) }
end
