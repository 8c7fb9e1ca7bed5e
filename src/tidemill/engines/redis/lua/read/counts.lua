--# reads
--# include ended
-- Counts jobs by queue and state, and what ended lately.
-- Takes: A.back, how many minutes before the present one are counted too.
-- Answers: {first and end of that span, names of queues, tally, what ended (see ended.lua), where to go on}.

local first, last = NOW - NOW % MINUTE - A.back * MINUTE, NOW + 1
local found = S.ended(first, last, true, 0)
return { first, last, call('HKEYS', P .. 'q'), call('HGETALL', P .. 'tally'), found[1], found[2] }
