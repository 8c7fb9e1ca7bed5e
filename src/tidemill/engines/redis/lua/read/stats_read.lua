--# reads
--# include stats
-- Reads statistics of a span of time, in parts: see stats.lua.
-- Takes: A.first, A.last (not included), A.position to go on from, A.queue (nil: all), A.of_tasks, A.task (nil: all).
-- Answers: {rows, next position or -1}.

return S.read_stats(A.first, A.last, A.position, A.queue, A.of_tasks, A.task)
