-- Returns whether the time of a holding in a space is over by the database's clock: a look at the earliest deadline there.
-- In a function of its own, so that no plan of a larger statement goes another way to it than by the index.
CREATE FUNCTION is_due_v1(wanted bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    earliest bigint;
BEGIN
    SELECT holding.until_us INTO earliest FROM holding
    WHERE holding.space = wanted AND holding.until_us IS NOT NULL
    ORDER BY holding.space, holding.until_us LIMIT 1;
    RETURN coalesce(earliest <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, false);
END
$$ SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off;

-- As open_lane_v1, which older servers go on using; it also returns whether anything in the space is due.
CREATE FUNCTION open_lane_v2(wanted bigint, after bigint, far bigint)
RETURNS TABLE (version bigint, frees bigint, upto bigint, oldest bigint, due boolean,
               seq bigint, takes boolean, first bytea, last bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM FROM space WHERE space.id = wanted FOR NO KEY UPDATE;
    RETURN QUERY
    SELECT space.version, space.frees, ledger.seq, ledger.oldest, is_due_v1(wanted),
           step.seq, step.takes, step.first, step.last
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
