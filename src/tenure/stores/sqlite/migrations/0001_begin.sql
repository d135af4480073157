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
