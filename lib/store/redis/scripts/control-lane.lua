#!lua
-- TurnLedger.control.
-- ARGV[1]: the session, or '' for all lanes
-- ARGV[2]: the mode
-- ARGV[3]: '1' if the session is in an external store, else ''
-- @include common, lane

local session_id, mode, foreign_session = ARGV[1], ARGV[2], ARGV[3]
local is_there = session_id == '' or foreign_session ~= '' or redis.call('EXISTS', key('session', session_id)) == 1
if not is_there or is_erased(session_id) then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
local lane = read_lane(session_id)
write(lane_key(session_id), lane, { mode = mode ~= 'open' and mode })
if not lane.head or mode == 'paused' then return { 1, 0 } end

-- Recomputes when the lane is due, because a rejected claim removed it from the index.
if not lane.leaseUntil then return { 1, rest_lane(session_id, lane) } end
attend(session_id, lane.leaseUntil)
return { 1, is_lapsed(lane) and 1 or 0 }
