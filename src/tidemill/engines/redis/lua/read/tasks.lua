--# reads
--# include core
-- Reads the entries of all tasks that were published, with their pauses.
-- Takes: nothing.
-- Answers: {name, entry, paused at, by, why} of each, the last three false if it is not paused, in no order.

local rows, entries = {}, call('HGETALL', P .. 'task')
for n = 1, #entries, 2 do
    local raw = call('HGET', P .. 'paused', entries[n])
    local pause = raw and unpack_(raw) or { false, false, false }
    rows[#rows + 1] = { entries[n], entries[n + 1], pause[1], pause[2], pause[3] }
end
return rows
