#!lua flags=allow-oom
-- LeaseStore.renew, and release with 0 ms. The row stays after the lease lapses, so that the fence continues to
-- grow.
-- ARGV[1]: the name of the lease
-- ARGV[2]: the holder
-- ARGV[3]: the fence
-- ARGV[4]: the duration in milliseconds
-- @include common, leases

if not is_own(ARGV[2], ARGV[3]) then return { 1, 0 } end
redis.call('HSET', lease_key, 'expiresAt', now + ARGV[4])
return { 1, 1 }
