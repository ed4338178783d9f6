-- Extends a hold, if it is the one given: generation, sequence and owner.
-- KEYS: lock, order. ARGV: the lock's value, ttl in ms, how long to keep the order in ms.
-- Returns 1, or 0 for lost.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
