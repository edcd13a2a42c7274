-- Deletes sessions.
-- @include common, contents, documents, lane, sessions

-- Removes all data of a session except its tombstone. Returns whether the session existed.
local function remove_session(id)
  -- Notifies callers that wait for the turns of the session.
  for _, turn_id in ipairs(open_turns(id, redis.call('HGET', lane_key(id), 'head'))) do changed(turn_id) end
  remove_turns(id, redis.call('ZRANGE', key('turns', id), 0, -1))
  for _, orchestrator in ipairs(redis.call('SMEMBERS', key('orchestrators', id))) do
    remove_checkpoints(orchestrator, id)
  end
  for _, document in ipairs(documents_of(id, '')) do remove_document(document) end
  attend(id, nil)
  redis.call('ZREM', base .. 'lanes', id)
  local session = read(session_key(id))
  if session then reindex(session, nil) end
  redis.call('UNLINK', session_key(id), lane_key(id), key('turns', id), queue_key(id), key('keys', id))
  remove_messages(id)
  return session ~= nil
end
