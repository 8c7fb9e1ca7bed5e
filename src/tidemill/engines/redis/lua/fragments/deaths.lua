--# at need
--# include record
-- The job that handles a death (`on_dead`): its id, record and body. moves.lua stores it.

-- Whether bytes are UTF-8, which a JSON string has to be.
local function is_text(bytes)
    if not bytes:find('[\128-\255]') then
        return true
    end
    for _, form in ipairs({
        '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]',
        '\237[\128-\159][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]',
        '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]',
    }) do
        bytes = bytes:gsub(form, ' ')
    end
    return not bytes:find('[\128-\255]')
end

-- The body of a job as a JSON string; null where it is no text, or encrypted.
local function body_text(id, j)
    local body = j.bd or call('HGET', P .. 'body', id) or ''
    handled = handled + #body
    return j.co == 1 and is_text(body) and cjson.encode(body) or 'null'
end

-- model.ids.handler_id
local function handler_id(id, number)
    local mixed = bit.bxor(struct.unpack('>I2', id, 7), number)
    return id:sub(1, 6) .. struct.pack('>I2', 0x8000 + bit.band(mixed, 0xfff)) .. id:sub(9, 14)
        .. string.char(bit.bxor(id:byte(15), bit.band(bit.rshift(number, 12), 0xff)), 255 - id:byte(16))
end

-- What the catalogue says of a task. What cannot be read, as a later release may publish it, must not be in the way of a
-- death.
local function entry_of(name)
    local function whole(value, last)
        return type(value) == 'number' and value >= 0 and value <= last
    end
    local readable, entry = pcall(cjson.decode, call('HGET', P .. 'task', name) or '')
    if not readable or type(entry) ~= 'table' or type(entry.queue) ~= 'string' or not whole(entry.priority, 10) then
        return nil
    end
    local retry = type(entry.retry) == 'table' and entry.retry or {}
    return {
        queue = entry.queue, priority = entry.priority, timeout = whole(entry.timeout, 2 ^ 53) and entry.timeout or nil,
        attempts = whole(retry.attempts, 2 ^ 31) and retry.attempts or nil,
    }
end

-- model.death.handler_job: the handler of a job that is about to die. Its last failure is stored. Answers id, record, body.
function S.handler_of(id, j)
    local number, handler = j.rp or 0, nil
    repeat
        handler, number = handler_id(id, number), number + 1
    until not S.known(handler)
    local entry = entry_of(j.od) or { queue = j.q, priority = 5 }
    if not S.found_queue(entry.queue) then -- no worker has published the defaults: its own queue is there
        entry.queue = j.q
    end
    local said = unpack_(call('HGET', P .. 'f/' .. id, j.fc))
    local failure = cjson.encode({ kind = said[1], error = said[2], message = said[3], traceback = said[4],
        fingerprint = said[12] })
    local body = '[[{"id":"' .. S.uuid(id) .. '","task":' .. cjson.encode(j.t) .. ',"queue":' .. cjson.encode(j.q)
        .. ',"key":' .. (j.k and cjson.encode(j.k) or 'null') .. ',"attempts":' .. (j.a or 0) .. ',"crashes":'
        .. (j.cr or 0) .. ',"replays":' .. (j.rp or 0) .. ',"failure":' .. failure .. ',"body":' .. body_text(id, j)
        .. '}],{}]'
    return handler, {
        t = j.od, q = entry.queue, p = entry.priority, co = 1, k = j.k, to = entry.timeout, ma = entry.attempts or 5, c = NOW,
    }, body
end
