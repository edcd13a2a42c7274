import { CONTENTS } from './contents.js';
import { DOCUMENTS } from './documents.js';
import { LANE } from './lane.js';
import { thrifty } from './script.js';

/**
 * ARGV: session, epoch, of the log the document of its head, what that becomes and the version that it must have, '' when the log
 * stays; then the namespaces. Gives how many documents went of each, and how many messages; false: the head is another one.
 */
export const RESET_STATE = thrifty(
  'reset-state',
  [CONTENTS, DOCUMENTS, LANE],
  /* lua */ `
local session_id, epoch, head, value, if_version = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local namespaces = arguments_from(6)
if head ~= '' then
  local row = live_document(head)
  if (row and tonumber(row.version) or 0) ~= if_version then return { 1, false } end
end

local documents = {}
for i, namespace in ipairs(namespaces) do documents[i] = clear_documents(session_id, namespace) end
local messages = head ~= '' and remove_messages(session_id) or 0

local lane = read_lane(session_id)
-- Nobody has begun an earlier one where there was no turn.
if lane.nextPosition then
  begin_epoch(session_id, lane, namespaces, epoch)
  if head ~= '' then
    local version = next_version(if_version)
    write_document(head, new_document(head), { value = value, valueVersion = version, version = version, createdAt = now })
  end
end
return { 1, documents, messages }
`,
);
