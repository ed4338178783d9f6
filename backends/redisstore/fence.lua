-- Stands before a command: goes on only if no later holder has been here.
-- KEYS: those of the command, then the register of each grant.
-- ARGV: those of the command, then token, first token of its generation and origin of each grant, then their number.
-- A register is '<token> <origin>'. Tokens are 16 hex digits, and are compared by halves: a Lua number is exact up to
-- 53 bits only, and strings are compared by the rules of the server's locale (Danish sorts 'aa' after 'b').
local pawl_refused, KEYS, ARGV = (function(keys, args)
  local function less(a, b)
    local high = tonumber(string.sub(a, 1, 8), 16) - tonumber(string.sub(b, 1, 8), 16)
    if high ~= 0 then
      return high < 0
    end
    return tonumber(string.sub(a, 9, 16), 16) < tonumber(string.sub(b, 9, 16), 16)
  end

  local count = tonumber(args[#args])
  local lastkey, lastarg = #keys - count, #args - 1 - 3 * count
  local raise = {}
  for i = 1, count do
    local at = lastarg + 3 * (i - 1)
    local token, first, origin = args[at + 1], args[at + 2], args[at + 3]
    local register = redis.call('GET', keys[lastkey + i])
    if register then
      local seen, from = string.sub(register, 1, 16), string.sub(register, 18)
      if from ~= origin and from ~= '' and not less(seen, first) then
        return 'PAWLFOREIGN the register holds a token of another origin'
      end
      if less(token, seen) then
        return 'PAWLSTALE a later holder has come'
      end
    end
    raise[i] = token .. ' ' .. origin
    if raise[i] == register then
      raise[i] = false
    end
  end
  for i = 1, count do -- only now: a script that is refused has changed nothing
    if raise[i] then
      redis.call('SET', keys[lastkey + i], raise[i])
    end
  end

  local ownkeys, ownargs = {}, {}
  for i = 1, lastkey do
    ownkeys[i] = keys[i]
  end
  for i = 1, lastarg do
    ownargs[i] = args[i]
  end
  return nil, ownkeys, ownargs
end)(KEYS, ARGV)
if pawl_refused then
  return redis.error_reply(pawl_refused)
end
