#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.erase.
-- ARGV[1]: the session
-- ARGV[2]: the session that must not be another one, see is_other_session, or ''
-- @include common, session-removal

if ARGV[2] ~= '' then
  local created_at, user_id = unpack(redis.call('HMGET', session_key(ARGV[1]), 'createdAt', 'userId'))
  if created_at and is_other_session(ARGV[2], created_at, user_id) then return { 1, 0 } end
end
redis.call('SETNX', key('tombstone', ARGV[1]), now)
return { 1, remove_session(ARGV[1]) and 1 or 0 }
