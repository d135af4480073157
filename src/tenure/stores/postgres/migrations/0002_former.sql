CREATE TABLE former (
    network bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    slot text COLLATE "C" NOT NULL,
    first bytea NOT NULL,
    PRIMARY KEY (network, owner, slot)
);
