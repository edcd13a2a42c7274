#!lua flags=allow-oom
-- The row stays after the lease lapses, so that the fence keeps growing. ARGV: name, holder, fence, ttlMs.
-- @include common, leases

if not is_own(ARGV[2], ARGV[3]) then return { 1, 0 } end
redis.call('HSET', lease_key, 'expiresAt', now + ARGV[4])
return { 1, 1 }
