--# reads
--# include ended
-- Counts what ended in a span of time, in parts: see ended.lua.
-- Takes: A.first, A.last (not included), A.position to go on from, A.whole, A.queue (nil: all).
-- Answers: {rows, next position or -1}.

return S.ended(A.first, A.last, A.whole, A.position, A.queue)
