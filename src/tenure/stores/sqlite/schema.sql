CREATE TABLE ledger (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL DEFAULT 0,
    oldest INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    next_network INTEGER NOT NULL DEFAULT 1
);
INSERT INTO ledger (id) VALUES (1);

CREATE TABLE space (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL DEFAULT 1
);

CREATE TABLE network (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    space INTEGER NOT NULL REFERENCES space (id),
    document TEXT NOT NULL
);
CREATE INDEX network_space ON network (space);

CREATE TABLE holding (
    space INTEGER NOT NULL,
    first BLOB NOT NULL,
    last BLOB NOT NULL,
    network INTEGER NOT NULL,
    owner TEXT NOT NULL,
    slot TEXT NOT NULL,
    state INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    since_us INTEGER NOT NULL,
    until_us INTEGER,
    request TEXT,
    details TEXT,
    PRIMARY KEY (space, first)
) WITHOUT ROWID;
CREATE UNIQUE INDEX holding_claim ON holding (owner, network, slot) WHERE state < 2;
CREATE INDEX holding_parting ON holding (owner) WHERE state >= 2;

CREATE TABLE change (
    seq INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    verb TEXT NOT NULL,
    space INTEGER,
    network INTEGER,
    first BLOB,
    last BLOB,
    owner TEXT,
    slot TEXT,
    generation INTEGER,
    request TEXT,
    details TEXT
);
CREATE TABLE former (
    network INTEGER NOT NULL,
    owner TEXT NOT NULL,
    slot TEXT NOT NULL,
    first BLOB NOT NULL,
    PRIMARY KEY (network, owner, slot)
) WITHOUT ROWID;
ALTER TABLE space ADD COLUMN queued INTEGER NOT NULL DEFAULT 0;

CREATE TABLE waiting (
    ticket INTEGER PRIMARY KEY AUTOINCREMENT,
    space INTEGER NOT NULL,
    network INTEGER NOT NULL,
    owner TEXT NOT NULL,
    slot TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE UNIQUE INDEX waiting_claim ON waiting (network, owner, slot);
CREATE INDEX waiting_order ON waiting (space, ticket);

CREATE TABLE reply (
    key TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    at_us INTEGER NOT NULL,
    space INTEGER,
    network INTEGER,
    first BLOB,
    last BLOB,
    generation INTEGER,
    until_us INTEGER,
    answer TEXT
) WITHOUT ROWID;
CREATE INDEX reply_age ON reply (at_us);

CREATE INDEX holding_due ON holding (space, until_us) WHERE until_us IS NOT NULL;
CREATE INDEX change_of_address ON change (first, seq) WHERE first IS NOT NULL AND verb <> 'grant';
CREATE TABLE paper (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
ALTER TABLE waiting ADD COLUMN lasts_us INTEGER NOT NULL DEFAULT 0;
CREATE TABLE archive (
    last_seq INTEGER PRIMARY KEY,
    first_seq INTEGER NOT NULL,
    first_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE archive_place (
    place INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    PRIMARY KEY (place, last_seq)
) WITHOUT ROWID;
