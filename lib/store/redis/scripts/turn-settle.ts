import { CONTENTS } from './contents.js';
import { DOCUMENTS } from './documents.js';
import { LANE } from './lane.js';
import { script } from './script.js';
import { SESSIONS } from './sessions.js';
import { ATTEMPT } from './turn-claim.js';

/**
 * TurnLedger.settle: everything that the turn changed, the head of the lane, and the claim of the next turn.
 *
 * ARGV: the hold, status, what came of the turn as JSON, error as JSON or '', of the checkpoint orchestrator, index or '', text and
 * how many are kept or '', namespaces that are written to, what claim_from takes with the holder '' for no claim, 1 when the client
 * knows the turn as it was claimed, how many documents change, then what append_document takes for each, then the messages.
 */
export const SETTLE = script(
  'settle',
  [CONTENTS, DOCUMENTS, LANE, ATTEMPT, SESSIONS],
  /* lua */ `
local session_id, turn_id, fence, status, outcome, failure = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local checkpoint_of, turn_index = ARGV[7], ARGV[8]
local claim = ARGV[12] ~= '' and claim_from(12)

-- The turn that is the head now, when it is claimed, and whether to ring.
local function hand_over(lane, known)
  local head = claim and lane.head and read_turn(lane.head)
  if head and is_due(head) and not is_paused(session_id, lane) then
    return begin_attempt(session_id, lane, head, claim, known), 0
  end
  return false, rest_lane(session_id, lane)
end

local settled_fence, orchestrator, failures, epochs, event_ttl =
  unpack(redis.call('HMGET', turn_key(turn_id), 'settledFence', 'orchestrator', 'failures', 'epochs', 'eventTtl'))
if settled_fence == fence then
  -- Sent twice: the first one was committed, only its answer was lost.
  local lane, next_turn, ring = read(lane_key(session_id)), false, 0
  if not lane.leaseUntil then
    next_turn, ring = hand_over(lane, {})
  elseif claim and is_held_by(lane, claim) then
    next_turn = claimed_reply(session_id, lane, read_turn(lane.head), claim, {})
  end
  return { 1, turn_reply(read_turn(turn_id)), false, next_turn, ring }
end

local lane, fenced = held(session_id, turn_id, fence)
if fenced then return fenced end
local reset = reset_since(lane.epochs, epochs, ARGV[11])
if reset then return refuse('STATE_RESET', 'session_id', session_id, 'namespaces', cjson.encode(reset)) end
if turn_index ~= '' then
  local first, latest = checkpoint_range(checkpoint_of, session_id)
  if tonumber(turn_index) ~= (latest or -1) + 1 then
    return refuse('CHECKPOINT_CONFLICT', 'orchestrator', checkpoint_of, 'session_id', session_id, 'turn_index', turn_index)
  end
  append_checkpoint(checkpoint_of, session_id, turn_index, ARGV[9], tonumber(ARGV[10]), first)
end

local messages_from = 18 + ARGV[17] * APPEND_ARGUMENTS
for first = 18, messages_from - 1, APPEND_ARGUMENTS do append_document(first) end
append_messages(session_id, turn_id, orchestrator, arguments_from(messages_from))

-- A session that ended meanwhile is not brought back by a turn that settles late.
local session = (status == 'awaiting-input' or status == 'completed') and read(key('session', session_id))
local session_change = session and session.state ~= 'expired' and touch_session(session) or false

local turn, ended = { id = turn_id, eventTtl = event_ttl }, { 'settledFence', fence, 'outcome', outcome }
local function also(field, value)
  ended[#ended + 1] = field
  ended[#ended + 1] = value
end
if status == 'failed' then also('failures', (failures or 0) + 1) end
if failure ~= '' then
  also('error', failure)
elseif failures then
  redis.call('HDEL', turn_key(turn_id), 'error')
end
end_turn(turn, status, unpack(ended))
drop_head(session_id, lane)

local known = { session = session_change, checkpoint_of = turn_index ~= '' and checkpoint_of }
local next_turn, ring = hand_over(lane, known)
return { 1, ARGV[16] ~= '' and now or turn_reply(read_turn(turn_id)), session_change, next_turn, ring }
`,
);
