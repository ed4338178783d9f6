-- Runs one command, behind fence.lua. KEYS: its first argument, by which the register was chosen. ARGV: the command.
-- All its keys must be under the hash tag of that, or the register says nothing about them.
local function tag(key)
  return string.match(key, '^[^{]*{([^}]+)}') or key
end
local keys = redis.pcall('COMMAND', 'GETKEYS', unpack(ARGV))
if keys.err then
  return redis.error_reply('PAWLKEYS ' .. keys.err)
end
for _, key in ipairs(keys) do
  if tag(key) ~= tag(KEYS[1]) then
    return redis.error_reply('PAWLKEYS the keys are not under the hash tag of the first argument')
  end
end
-- Not by RESP3: there a nil in a list would cut the list off, since Lua lists end at the first nil.
return redis.pcall(unpack(ARGV))
