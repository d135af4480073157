-- Takes a space's lane, then reads what happened there. As a function it reads after the lock is had: a single
-- statement would see only what was committed before it began to wait.
CREATE FUNCTION open_lane_v1(wanted bigint, after bigint, far bigint)
RETURNS TABLE (version bigint, frees bigint, upto bigint, oldest bigint, seq bigint, takes boolean, first bytea, last bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM FROM space WHERE space.id = wanted FOR NO KEY UPDATE;
    RETURN QUERY
    SELECT space.version, space.frees, ledger.seq, ledger.oldest, step.seq, step.takes, step.first, step.last
    FROM space CROSS JOIN ledger LEFT JOIN LATERAL (
        SELECT change.seq, change.verb = 'grant' AS takes, change.first, change.last FROM change
        WHERE change.seq > after AND change.seq <= after + far AND change.space = wanted
          AND change.verb IN ('grant', 'release')
        ORDER BY change.seq
    ) AS step ON ledger.seq <= after + far
    WHERE space.id = wanted AND ledger.id = 1
    ORDER BY step.seq;
END
$$;
