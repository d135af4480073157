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
