import { CONTENTS } from './contents.js';
import { DOCUMENTS } from './documents.js';
import { query, script, thrifty } from './script.js';

/** ARGV: orchestrator, session, index, text, keep or ''. */
export const APPEND_CHECKPOINT = script(
  'append-checkpoint',
  [CONTENTS],
  /* lua */ `
local orchestrator, session_id, index = ARGV[1], ARGV[2], ARGV[3]
if is_erased(session_id) then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
local first, latest = checkpoint_range(orchestrator, session_id)
if tonumber(index) ~= (latest or -1) + 1 then
  return refuse('CHECKPOINT_CONFLICT', 'orchestrator', orchestrator, 'session_id', session_id, 'turn_index', index)
end
append_checkpoint(orchestrator, session_id, index, ARGV[4], tonumber(ARGV[5]), first)
return { 1, now }
`,
);

/** ARGV: orchestrator, session, index or '' for the latest. */
export const LOAD_CHECKPOINT = query(
  'load-checkpoint',
  [CONTENTS],
  /* lua */ `
if ARGV[3] == '' then return { 1, latest_checkpoint(ARGV[1], ARGV[2]) } end
return { 1, read_checkpoint(checkpoints_key(ARGV[1], ARGV[2]), ARGV[3]) }
`,
);

/** ARGV: orchestrator, session, the index to begin below or '', limit. */
export const CHECKPOINT_HISTORY = query(
  'checkpoint-history',
  [CONTENTS],
  /* lua */ `
local at = checkpoints_key(ARGV[1], ARGV[2])
local first, latest = checkpoint_range(ARGV[1], ARGV[2])
local history = {}
if first then
  local last = math.min(latest, (tonumber(ARGV[3]) or math.huge) - 1)
  first = math.max(first, last - ARGV[4] + 1)
  for index = last, first, -1 do history[#history + 1] = read_checkpoint(at, index) end
end
return { 1, history }
`,
);

/** ARGV: orchestrator, the bounds of the ids as ZRANGE BYLEX takes them, limit. */
export const CHECKPOINTED_SESSIONS = query(
  'checkpointed-sessions',
  [CONTENTS],
  /* lua */ `
return { 1, redis.call('ZRANGE', key('checkpointed', ARGV[1]), ARGV[2], ARGV[3], 'BYLEX', 'LIMIT', 0, ARGV[4]) }
`,
);

export const CHECKPOINTED_BY = query(
  'checkpointed-by',
  [],
  /* lua */ `
return { 1, redis.call('SMEMBERS', key('orchestrators', ARGV[1])) }
`,
);

export const PRUNE_CHECKPOINTS = thrifty(
  'prune-checkpoints',
  [CONTENTS],
  /* lua */ `
local first, latest = checkpoint_range(ARGV[1], ARGV[2])
return { 1, first and prune_checkpoints(ARGV[1], ARGV[2], tonumber(ARGV[3]), first, latest) or 0 }
`,
);

export const DELETE_CHECKPOINTS = thrifty(
  'delete-checkpoints',
  [CONTENTS],
  /* lua */ `
remove_checkpoints(ARGV[1], ARGV[2])
return { 1 }
`,
);

/** ARGV: session, whether it must be there and live, then the messages. */
export const APPEND_MESSAGES = script(
  'append-messages',
  [CONTENTS, DOCUMENTS],
  /* lua */ `
local refusal = state_refusal(ARGV[1], ARGV[2])
if refusal then return refusal end
append_messages(ARGV[1], '', '', arguments_from(3))
return { 1, redis.call('LLEN', key('messages', ARGV[1])), now }
`,
);

/** ARGV: the bound of the ids as ZRANGE BYLEX takes it, limit. */
export const CONVERSED_SESSIONS = query(
  'conversed-sessions',
  [],
  /* lua */ `
return { 1, redis.call('ZRANGE', base .. 'conversed', ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2]) }
`,
);

export const MESSAGE_WINDOW = query(
  'message-window',
  [CONTENTS],
  /* lua */ `
return { 1, read_window(ARGV[1], tonumber(ARGV[2])) }
`,
);

/** ARGV: session, the position to begin after, limit. */
export const MESSAGE_PAGE = query(
  'message-page',
  [CONTENTS],
  /* lua */ `
local after, limit = ARGV[2], tonumber(ARGV[3])
return { 1, limit > 0 and redis.call('LRANGE', key('messages', ARGV[1]), after, after + limit - 1) or {} }
`,
);
