#!lua flags=allow-oom
-- StateStore.evictIdle.
-- ARGV[1]: the namespace
-- ARGV[2]: the number of documents to keep
-- ARGV[3]: the maximum number to remove
-- @include common, documents

-- The maximum number of expired documents per run, so that other calls do not wait long.
local MOST_EXPIRED = 10000

local at, keep, limit = key('idle', ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('ZCARD', at) <= keep then return { 1, 0 } end
remove_expired_documents(MOST_EXPIRED)
-- The remaining expired documents may all belong to this namespace. Evict too few rather than too many, unless all go.
local expired = keep > 0 and redis.call('ZCOUNT', base .. 'expiring', '-inf', now) or 0
local count = math.min(redis.call('ZCARD', at) - expired - keep, limit)
if count <= 0 then return { 1, 0 } end
local documents = redis.call('ZRANGE', at, 0, count - 1)
for _, document in ipairs(documents) do remove_document(document) end
return { 1, #documents }
