--# goes on
--# include take
-- Takes ready jobs for a claimant.
-- Takes: A.claim, see take.lua.
-- Answers: {wait, now, jobs}, or {refusal, last number}. BADCLAIMANT: the claimant is another member's.

local c = S.read_claim(A.claim)
local refused = S.refusal(c)
if refused == 'BADCLAIMANT' then
    return redis.error_reply('BADCLAIMANT')
elseif refused then
    return S.answer({ refused, c.known.n or 0 })
end
local answer = S.claim(c)
S.finish()
return S.answer(answer)
