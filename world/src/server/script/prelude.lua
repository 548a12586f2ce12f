-- What scripts find in place of some functions of Lua: no files, no chance, no globals. Redis 6.2 names the lines of the two
-- errors below.
local creates, describe = ...
local globals, try = _G, pcall
dofile, loadfile, print, math.random, math.randomseed = nil
local guard = {}
guard.__newindex = function(_, name)
  error(string.format(creates, tostring(name)), 2)
end

-- The error itself is not text where a function of the server has raised it.
local function told(is_done, ...) if is_done then return true, ... end return false, describe((...)) end
function pcall(...) return told(try(...)) end
guard.__index = function(_, name)
  error(string.format("Script attempted to access nonexistent global variable '%s'", tostring(name)), 2)
end
setmetatable(globals, guard)
