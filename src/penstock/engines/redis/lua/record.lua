--# include core
-- Records as they are stored. The general form is MessagePack of all fields (see moves.lua). Jobs on the plain way, which
-- is nearly all of them, have forms that are made by joining strings; nothing of them is taken apart on that way:
--
--   'E' seq now tail                                    ready since it was enqueued, at the first attempt
--   'R' fence claimant member number now n name E...    running since it was claimed
--   'C' fence ran ended now n name E...                 completed; 'D': and its body was dropped
--
-- Numbers have 8 bytes, claimant and member 16, n is one byte: the length of the member's name. The tail is made by the
-- producer (enqueue.py): the length of the queue's name in one byte and the name, the length of the spec in four and the
-- spec (MessagePack of what never changes), the headers. MessagePack begins with a byte above 127, these do not.

local ENQUEUED, CLAIMED, DONE, DROPPED = 69, 82, 67, 68
local R_SHARED, R_NAME, C_NAME = 50, 58, 34 -- where claimed_at begins; where the length of the name stands

local function add_enqueued(j, raw, at)
    j.b, j.c = struct.unpack('>I8I8', raw, at + 1)
    local q = at + 18 + raw:byte(at + 17)
    local h = q + 4 + struct.unpack('>I4', raw, q)
    for name, value in pairs(unpack_(raw:sub(q + 4, h - 1))) do
        j[name] = value
    end
    j.q, j.s, j.r, j.g = raw:sub(at + 18, q - 1), j.b, j.c, ''
    if h <= #raw then
        j.h = raw:sub(h)
    end
    return j
end

-- The fields of a record, whatever its form.
function S.decode(raw)
    local form = raw:byte(1)
    if form > 127 then
        return unpack_(raw)
    elseif form == ENQUEUED then
        return add_enqueued({ st = READY }, raw, 1)
    end
    local name = form == CLAIMED and R_NAME or C_NAME
    local at = name + 1 + raw:byte(name)
    local j = add_enqueued({ m = raw:sub(name + 1, at - 1) }, raw, at)
    j.f = struct.unpack('>I8', raw, 2)
    j.cl = struct.unpack('>I8', raw, name - 8)
    if form == CLAIMED then
        j.st, j.ct, j.mi = RUNNING, raw:sub(10, 25), raw:sub(26, 41)
        j.cn = struct.unpack('>I8', raw, 42)
    else
        local ran, ended = struct.unpack('>I8I8', raw, 10)
        j.st, j.sf, j.a, j.e, j.sa = COMPLETED, j.f, 1, ended, ended - ran
        j.nb = form == DROPPED or nil
    end
    return j
end

-- Whether nothing but order decides in a queue: no limits, no groups.
function S.plain(q)
    return not (q.own or q.key or q.keyed or next(q.tasks))
end

-- The server takes some thousand arguments of a script at a time.
function S.each(command, key, list)
    if #list <= 2 * LIMIT then
        call(command, key, unpack(list))
        return
    end
    for from = 1, #list, 2 * LIMIT do
        call(command, key, unpack(list, from, math.min(#list, from + 2 * LIMIT - 1)))
    end
end
