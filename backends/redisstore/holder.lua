-- Says who holds a lock. A script goes to a primary, also where a cluster client reads from replicas.
-- KEYS: lock. Returns {value, ms left}, or {} for nobody.
local held = redis.call('GET', KEYS[1])
if not held then
  return {}
end
return {held, redis.call('PTTL', KEYS[1])}
