#!lua flags=allow-oom
-- StateStore.reset. Returns the numbers of deleted documents per namespace and of deleted messages, or false if the
-- head has another version.
-- ARGV[1]: the session
-- ARGV[2]: the epoch
-- ARGV[3]: the document of the log's head, or '' to keep the log
-- ARGV[4]: the new value of the head
-- ARGV[5]: the expected version of the head
-- ARGV[6..]: the namespaces
-- @include common, contents, documents, epochs, lane

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
-- A lane without turns does not need an epoch.
if lane.nextPosition then
  begin_epoch(session_id, lane, namespaces, epoch)
  if head ~= '' then
    local version = next_version(if_version)
    local begun = { value = value, valueVersion = version, version = version, createdAt = now }
    write_document(head, new_document(head), begun)
  end
end
return { 1, documents, messages }
