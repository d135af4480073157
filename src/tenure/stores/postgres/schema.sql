CREATE TABLE ledger (
    id smallint PRIMARY KEY CHECK (id = 1),
    schema_version integer NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    oldest bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO ledger (id, schema_version) VALUES (1, 0);

CREATE SEQUENCE holding_generation CACHE 32;
CREATE SEQUENCE network_number;

CREATE TABLE space (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL CONSTRAINT space_name UNIQUE,
    version bigint NOT NULL DEFAULT 1,
    frees bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE network (
    id bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL CONSTRAINT network_name UNIQUE,
    space bigint NOT NULL REFERENCES space (id),
    document text NOT NULL
);
CREATE INDEX network_space ON network (space);

CREATE TABLE holding (
    space bigint NOT NULL,
    network bigint NOT NULL,
    generation bigint NOT NULL,
    since_us bigint NOT NULL,
    until_us bigint,
    state smallint NOT NULL,
    first bytea NOT NULL,
    last bytea NOT NULL,
    owner text COLLATE "C" NOT NULL,
    slot text COLLATE "C" NOT NULL,
    request text COLLATE "C",
    details text COLLATE "C",
    CONSTRAINT holding_address PRIMARY KEY (space, first)
);
CREATE UNIQUE INDEX holding_claim ON holding (owner, network, slot) WHERE state < 2;
CREATE INDEX holding_parting ON holding (owner) WHERE state >= 2;

CREATE TABLE change (
    seq bigint PRIMARY KEY,
    at_us bigint NOT NULL,
    space bigint,
    network bigint,
    generation bigint,
    verb text COLLATE "C" NOT NULL,
    first bytea,
    last bytea,
    owner text COLLATE "C",
    slot text COLLATE "C",
    request text COLLATE "C",
    details text COLLATE "C"
);
CREATE TABLE former (
    network bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    slot text COLLATE "C" NOT NULL,
    first bytea NOT NULL,
    PRIMARY KEY (network, owner, slot)
);
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
ALTER TABLE space ADD COLUMN queued boolean NOT NULL DEFAULT false;

CREATE SEQUENCE waiting_ticket;
CREATE TABLE waiting (
    ticket bigint PRIMARY KEY,
    space bigint NOT NULL,
    network bigint NOT NULL,
    since_us bigint NOT NULL,
    until_us bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    slot text COLLATE "C" NOT NULL,
    document text COLLATE "C" NOT NULL,
    CONSTRAINT waiting_claim UNIQUE (network, owner, slot)
);
CREATE INDEX waiting_order ON waiting (space, ticket);

CREATE TABLE reply (
    at_us bigint NOT NULL,
    space bigint,
    network bigint,
    generation bigint,
    until_us bigint,
    key text COLLATE "C" NOT NULL CONSTRAINT reply_key PRIMARY KEY,
    body bytea NOT NULL,
    first bytea,
    last bytea,
    answer text COLLATE "C"
);
CREATE INDEX reply_age ON reply USING brin (at_us);

CREATE INDEX holding_due ON holding (space, until_us) WHERE until_us IS NOT NULL;
CREATE INDEX change_of_address ON change (first, seq) WHERE first IS NOT NULL AND verb <> 'grant';
CREATE TABLE paper (
    revision bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    document text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, name)
);
ALTER TABLE waiting ADD COLUMN lasts_us bigint NOT NULL DEFAULT 0;
CREATE TABLE archive (
    last_seq bigint PRIMARY KEY,
    first_seq bigint NOT NULL,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    body bytea NOT NULL,
    places integer[] NOT NULL
);
ALTER TABLE archive ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX archive_place ON archive USING gin (places);
-- Finds the pages that tell of places. The planner knows nothing of the marks that will be asked for, and would rather
-- read all pages than take its chance with the index: here it must take the index.
CREATE FUNCTION archive_pages_v1(marks integer[])
RETURNS TABLE (last_seq bigint)
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
    SELECT archive.last_seq FROM archive WHERE archive.places && marks;
$$;
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
