import { CLAIM_TURN } from './turn-claim.js';
import { CONTENTS } from './contents.js';
import { DOCUMENTS } from './documents.js';
import { LANE } from './lane.js';
import { script } from './script.js';
import { SESSIONS } from './sessions.js';

/** TurnLedger.settle: everything that the turn changed, the head of the lane, and the claim of the next turn. */
export const SETTLE = script(
  'settle',
  [CONTENTS, DOCUMENTS, LANE, CLAIM_TURN, SESSIONS],
  /* lua */ `
local session_id, turn_id, fence, status = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local checkpoint_of, turn_index = ARGV[8], ARGV[9]

local function claim_next(known)
  return ARGV[12] ~= '' and claim_turn(session_id, cjson.decode(ARGV[12]), known) or false
end

local turn = read(key('turn', turn_id))
if turn and turn.settledFence == fence then
  -- Sent twice: the first one was committed, only its answer was lost.
  local next_turn, ring = claim_next({}), 0
  if not next_turn and not redis.call('HGET', key('lane', session_id), 'runningTurn') then
    local head = head_of(session_id)
    ring = head and is_due(head) and 1 or 0
  end
  return { 1, turn_reply(turn), false, next_turn, ring }
end

local lane, _, fenced = held(session_id, turn_id, fence, turn)
if fenced then return fenced end
local reset = reset_since(lane, turn, ARGV[13])
if reset then return refuse('STATE_RESET', 'session_id', session_id, 'namespaces', cjson.encode(reset)) end
if turn_index ~= '' and not is_next_checkpoint(checkpoint_of, session_id, turn_index) then
  return refuse('CHECKPOINT_CONFLICT', 'orchestrator', checkpoint_of, 'session_id', session_id, 'turn_index', turn_index)
end

if turn_index ~= '' then append_checkpoint(checkpoint_of, session_id, turn_index, ARGV[10], tonumber(ARGV[11])) end
local messages_from = 15 + ARGV[14] * APPEND_ARGUMENTS
for first = 15, messages_from - 1, APPEND_ARGUMENTS do append_document(first) end
append_messages(session_id, turn_id, turn.orchestrator, arguments_from(messages_from))

local function given(text)
  return text ~= '' and text
end

-- A session that ended meanwhile is not brought back by a turn that settles late.
local session = (status == 'awaiting-input' or status == 'completed') and read(key('session', session_id))
local session_change = session and session.state ~= 'expired' and touch_session(session) or nil
end_turn(turn, status, {
  settledFence = fence,
  turnIndex = given(turn_index),
  reply = given(ARGV[5]),
  error = given(ARGV[6]),
  report = given(ARGV[7]),
  failures = status == 'failed' and (turn.failures or 0) + 1 or turn.failures or false,
})
local known = { lane = lane, session = session_change and session, checkpoint_of = turn_index ~= '' and checkpoint_of }
local next_turn = claim_next(known)
local ring = next_turn and 0 or rest_lane(session_id, lane)
return { 1, turn_reply(turn), session_change or false, next_turn, ring }
`,
);
