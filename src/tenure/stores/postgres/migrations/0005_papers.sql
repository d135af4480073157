CREATE TABLE paper (
    revision bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    document text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, name)
);
