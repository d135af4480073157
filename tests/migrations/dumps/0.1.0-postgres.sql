CREATE FUNCTION a_release.open_lane_v1(wanted bigint, after bigint, far bigint) RETURNS TABLE(version bigint, frees bigint, upto bigint, oldest bigint, seq bigint, takes boolean, first bytea, last bytea)
    LANGUAGE plpgsql
    AS $$
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
CREATE TABLE a_release.change (
    seq bigint NOT NULL,
    at_us bigint NOT NULL,
    space bigint,
    network bigint,
    generation bigint,
    verb text NOT NULL COLLATE pg_catalog."C",
    first bytea,
    last bytea,
    owner text COLLATE pg_catalog."C",
    slot text COLLATE pg_catalog."C",
    request text COLLATE pg_catalog."C",
    details text COLLATE pg_catalog."C"
);
CREATE TABLE a_release.former (
    network bigint NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    slot text NOT NULL COLLATE pg_catalog."C",
    first bytea NOT NULL
);
CREATE TABLE a_release.holding (
    space bigint NOT NULL,
    network bigint NOT NULL,
    generation bigint NOT NULL,
    since_us bigint NOT NULL,
    until_us bigint,
    state smallint NOT NULL,
    first bytea NOT NULL,
    last bytea NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    slot text NOT NULL COLLATE pg_catalog."C",
    request text COLLATE pg_catalog."C",
    details text COLLATE pg_catalog."C"
);
CREATE SEQUENCE a_release.holding_generation
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 32;
CREATE TABLE a_release.ledger (
    id smallint NOT NULL,
    schema_version integer NOT NULL,
    seq bigint DEFAULT 0 NOT NULL,
    oldest bigint DEFAULT 0 NOT NULL,
    CONSTRAINT ledger_id_check CHECK ((id = 1))
)
WITH (fillfactor='10');
CREATE TABLE a_release.network (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    space bigint NOT NULL,
    document text NOT NULL
);
CREATE SEQUENCE a_release.network_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE a_release.paper (
    revision bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    document text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE a_release.reply (
    at_us bigint NOT NULL,
    space bigint,
    network bigint,
    generation bigint,
    until_us bigint,
    key text NOT NULL COLLATE pg_catalog."C",
    body bytea NOT NULL,
    first bytea,
    last bytea,
    answer text COLLATE pg_catalog."C"
);
CREATE TABLE a_release.space (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    version bigint DEFAULT 1 NOT NULL,
    frees bigint DEFAULT 0 NOT NULL,
    queued boolean DEFAULT false NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE a_release.space ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME a_release.space_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE a_release.waiting (
    ticket bigint NOT NULL,
    space bigint NOT NULL,
    network bigint NOT NULL,
    since_us bigint NOT NULL,
    until_us bigint NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    slot text NOT NULL COLLATE pg_catalog."C",
    document text NOT NULL COLLATE pg_catalog."C"
);
CREATE SEQUENCE a_release.waiting_ticket
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
INSERT INTO a_release.change VALUES (1, 1794784363910273, 1, 1, NULL, 'network.add', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"description":"first","kind":"manual","labels":{"site":"north"},"mac_prefix":"aa:00:01","network":"net","tags":["t"],"uuid":"09e9731c-0a2b-4f68-8e2d-e9a7a039c593"}');
INSERT INTO a_release.change VALUES (2, 1794784363920046, 1, 1, NULL, 'subnet.add', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"cidr":"192.0.2.0/24","dns":["192.0.2.2"],"gateway":"192.0.2.1","name":"four","network":"net","uuid":"0b008888-8403-4cad-8733-5bd7def4939f","zones":["z1"]}');
INSERT INTO a_release.change VALUES (3, 1794784363922747, 1, 1, NULL, 'subnet.add', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"cidr":"2001:db8::/56","name":"six","network":"net","unit":64,"uuid":"5e2eee9d-3ec7-43d6-a952-daf68b74da51"}');
INSERT INTO a_release.change VALUES (4, 1794784363925242, 1, 1, NULL, 'pool.add', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"name":"small","network":"net","range":"192.0.2.10-192.0.2.14"}');
INSERT INTO a_release.change VALUES (5, 1794784363930262, 1, 1, NULL, 'pool.add', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"cooling_s":3600,"name":"big","network":"net","policy":"sticky","range":"192.0.2.100-192.0.2.200"}');
INSERT INTO a_release.change VALUES (6, 1794784363932882, 1, 1, NULL, 'pool.add', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"name":"blocks","network":"net","policy":"random","range":"2001:db8::/60"}');
INSERT INTO a_release.change VALUES (7, 1794784363938976, 1, 1, NULL, 'reserve', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"labels":{"by":"hand"},"network":"net","range":"192.0.2.150-192.0.2.159","reason":"printers"}');
INSERT INTO a_release.change VALUES (8, 1794784363941696, 1, 1, NULL, 'preallocation.add', NULL, NULL, NULL, NULL, NULL, '{"address":"192.0.2.110","by":["token/ops","release"],"network":"net","owner":"vm/awaited"}');
INSERT INTO a_release.change VALUES (9, 1794784363945956, 2, 2, NULL, 'network.add', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"kind":"manual","network":"twin","space":"site","uuid":"70cef4ef-35d6-4295-8b7b-9d43e4eb22d7"}');
INSERT INTO a_release.change VALUES (10, 1794784363948986, 2, 3, NULL, 'network.add', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"kind":"vip","network":"other","space":"site","uuid":"58eecdc1-f7b7-4258-8374-4c153e3dac95"}');
INSERT INTO a_release.change VALUES (11, 1794784363953587, 1, 1, NULL, 'network.connect', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"group":"racks","link":"br0","mode":"bridged","network":"net"}');
INSERT INTO a_release.change VALUES (12, 1794784363970623, 1, 1, 1, 'grant', '\x04c000020a', '\x04c000020a', 'vm/full', '0', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (13, 1794784363970640, 1, 1, 2, 'grant', '\x04c000020b', '\x04c000020b', 'vm/full', '1', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (14, 1794784363970644, 1, 1, 3, 'grant', '\x04c000020c', '\x04c000020c', 'vm/full', '2', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (15, 1794784363970646, 1, 1, 4, 'grant', '\x04c000020d', '\x04c000020d', 'vm/full', '3', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (16, 1794784363970648, 1, 1, 5, 'grant', '\x04c000020e', '\x04c000020e', 'vm/full', '4', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (17, 1794784364004686, 1, 1, 33, 'grant', '\x04c000028c', '\x04c000028c', 'vm/kept', '', NULL, '{"by":["token/ops","release"],"carrier":"host-1","labels":{"a":"b"},"plan":"p"}');
INSERT INTO a_release.change VALUES (18, 1794784364006505, 1, 1, 34, 'grant', '\x04c000026f', '\x04c000026f', 'vm/pending', '', NULL, '{"by":["token/ops","release"],"state":"pending","until_us":1794787964006505}');
INSERT INTO a_release.change VALUES (19, 1794784364007772, 1, 1, 35, 'grant', '\x04c00002aa', '\x04c00002aa', 'vm/cooled', '', 'deploy-1', '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (20, 1794784364011178, 1, 1, 35, 'cool', '\x04c00002aa', '\x04c00002aa', 'vm/cooled', '', 'deploy-2', '{"since_us":1794784364007772,"request":"deploy-1","until_us":1794787964011178,"by":["token/ops", "release"]}');
INSERT INTO a_release.change VALUES (21, 1794784364012574, 1, 1, 36, 'grant', '\x04c00002af', '\x04c00002af', 'vm/before', 'nic0', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (22, 1794784364015393, 1, 1, 6, 'transfer', '\x04c00002af', '\x04c00002af', 'vm/after', 'nic1', NULL, '{"by":["token/ops","release"],"from":"vm/before","from_slot":"nic0","since_us":1794784364012574}');
INSERT INTO a_release.change VALUES (23, 1794784364016404, 1, 1, 37, 'grant', '\x04c0000295', '\x04c0000295', 'vm/draining', '', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (24, 1794784364022350, 1, 1, 37, 'modify', '\x04c0000295', '\x04c0000295', 'vm/draining', '', NULL, '{"by":["token/ops","release"],"state":"draining"}');
INSERT INTO a_release.change VALUES (25, 1794784364024012, 1, 1, 38, 'grant', '\x0620010db80000000b0000000000000000', '\x0620010db80000000bffffffffffffffff', 'pod/six', '', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.change VALUES (26, 1794784364029679, 1, 1, NULL, 'wait', NULL, NULL, 'vm/waiting', '', NULL, '{"by":["token/ops","release"],"ticket":1}');
INSERT INTO a_release.change VALUES (27, 1794784364031550, NULL, NULL, NULL, 'paper.write', NULL, NULL, NULL, NULL, NULL, '{"by":["token/ops","release"],"kind":"instance","name":"vm","revision":1}');
INSERT INTO a_release.former VALUES (1, 'vm/cooled', '', '\x04c00002aa');
INSERT INTO a_release.holding VALUES (1, 1, 1, 1794784363967319, NULL, 1, '\x04c000020a', '\x04c000020a', 'vm/full', '0', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 2, 1794784363967319, NULL, 1, '\x04c000020b', '\x04c000020b', 'vm/full', '1', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 3, 1794784363967319, NULL, 1, '\x04c000020c', '\x04c000020c', 'vm/full', '2', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 4, 1794784363967319, NULL, 1, '\x04c000020d', '\x04c000020d', 'vm/full', '3', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 5, 1794784363967319, NULL, 1, '\x04c000020e', '\x04c000020e', 'vm/full', '4', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 33, 1794784364004686, NULL, 1, '\x04c000028c', '\x04c000028c', 'vm/kept', '', NULL, '{"by":["token/ops","release"],"carrier":"host-1","labels":{"a":"b"},"plan":"p"}');
INSERT INTO a_release.holding VALUES (1, 1, 34, 1794784364006505, 1794787964006505, 0, '\x04c000026f', '\x04c000026f', 'vm/pending', '', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 35, 1794784364007772, 1794787964011178, 3, '\x04c00002aa', '\x04c00002aa', 'vm/cooled', '', 'deploy-1', '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 6, 1794784364015024, NULL, 1, '\x04c00002af', '\x04c00002af', 'vm/after', 'nic1', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 37, 1794784364016404, NULL, 2, '\x04c0000295', '\x04c0000295', 'vm/draining', '', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.holding VALUES (1, 1, 38, 1794784364024012, NULL, 1, '\x0620010db80000000b0000000000000000', '\x0620010db80000000bffffffffffffffff', 'pod/six', '', NULL, '{"by":["token/ops","release"]}');
INSERT INTO a_release.ledger VALUES (1, 5, 27, 0);
INSERT INTO a_release.network VALUES (2, 'twin', 2, '{"uuid":"70cef4ef-35d6-4295-8b7b-9d43e4eb22d7","kind":"manual","mac_prefix":null,"tags":[],"subnets":[],"preallocations":[],"retired":false,"labels":{},"description":"","connections":[],"serial":1,"created_us":1794784363943246,"modified_us":1794784363943246}');
INSERT INTO a_release.network VALUES (3, 'other', 2, '{"uuid":"58eecdc1-f7b7-4258-8374-4c153e3dac95","kind":"vip","mac_prefix":null,"tags":[],"subnets":[],"preallocations":[],"retired":false,"labels":{},"description":"","connections":[],"serial":1,"created_us":1794784363947918,"modified_us":1794784363947918}');
INSERT INTO a_release.network VALUES (1, 'net', 1, '{"uuid":"09e9731c-0a2b-4f68-8e2d-e9a7a039c593","kind":"manual","mac_prefix":"aa:00:01","tags":["t"],"subnets":[{"cidr":"192.0.2.0/24","uuid":"0b008888-8403-4cad-8733-5bd7def4939f","name":"four","gateway":"192.0.2.1","dns":["192.0.2.2"],"dhcp":false,"zones":["z1"],"unit":32,"keep_back":["broadcast","gateway","network"],"pools":[{"range":"192.0.2.10-192.0.2.14","name":"small","policy":"lowest","cooling_s":0,"retired":false,"labels":{},"description":""},{"range":"192.0.2.100-192.0.2.200","name":"big","policy":"sticky","cooling_s":3600,"retired":false,"labels":{},"description":""}],"reserved":[{"range":"192.0.2.150-192.0.2.159","reason":"printers","request":null,"labels":{"by":"hand"},"description":""}],"retired":false,"labels":{},"description":""},{"cidr":"2001:db8::/56","uuid":"5e2eee9d-3ec7-43d6-a952-daf68b74da51","name":"six","gateway":null,"dns":[],"dhcp":false,"zones":[],"unit":64,"keep_back":["gateway"],"pools":[{"range":"2001:db8::-2001:db8:0:f:ffff:ffff:ffff:ffff","name":"blocks","policy":"random","cooling_s":0,"retired":false,"labels":{},"description":""}],"reserved":[],"retired":false,"labels":{},"description":""}],"preallocations":[{"owner":"vm/awaited","slot":"","address":"192.0.2.110","request":null,"labels":{},"description":""}],"retired":false,"labels":{"site":"north"},"description":"first","connections":[{"group":"racks","mode":"bridged","link":"br0","vlan":""}],"serial":9,"created_us":1794784363901394,"modified_us":1794784363952390}');
INSERT INTO a_release.paper VALUES (1, 'instance', 'vm', '{"nics":[]}');
INSERT INTO a_release.reply VALUES (1794784363968500, NULL, NULL, NULL, NULL, 'many', '\x85cae4f2fe50fe3aad261f1c70323cff', NULL, NULL, '[{"holding": ["net", [1, 1, 20401095178, 20401095178, "vm/full", "0", "held", 1, 1794784363967319, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}, {"holding": ["net", [1, 1, 20401095179, 20401095179, "vm/full", "1", "held", 2, 1794784363967319, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}, {"holding": ["net", [1, 1, 20401095180, 20401095180, "vm/full", "2", "held", 3, 1794784363967319, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}, {"holding": ["net", [1, 1, 20401095181, 20401095181, "vm/full", "3", "held", 4, 1794784363967319, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}, {"holding": ["net", [1, 1, 20401095182, 20401095182, "vm/full", "4", "held", 5, 1794784363967319, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}]');
INSERT INTO a_release.reply VALUES (1794784364004686, 1, 1, 33, NULL, 'one', '\x97fc47d941ce9e4015b8d34d30cf26ad', '\x04c000028c', '\x04c000028c', '["token/ops","release"]');
INSERT INTO a_release.space OVERRIDING SYSTEM VALUE VALUES (2, 'site', 3, 0, false);
INSERT INTO a_release.space OVERRIDING SYSTEM VALUE VALUES (1, 'net', 11, 2, true);
INSERT INTO a_release.waiting VALUES (1, 1, 1, 1794784364028797, 1797376364028797, 'vm/waiting', '', '{"pool":"small"}');
SELECT pg_catalog.setval('a_release.holding_generation', 64, true);
SELECT pg_catalog.setval('a_release.network_number', 3, true);
SELECT pg_catalog.setval('a_release.space_id_seq', 2, true);
SELECT pg_catalog.setval('a_release.waiting_ticket', 1, true);
ALTER TABLE ONLY a_release.change
    ADD CONSTRAINT change_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY a_release.former
    ADD CONSTRAINT former_pkey PRIMARY KEY (network, owner, slot);
ALTER TABLE ONLY a_release.holding
    ADD CONSTRAINT holding_address PRIMARY KEY (space, first);
ALTER TABLE ONLY a_release.ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (id);
ALTER TABLE ONLY a_release.network
    ADD CONSTRAINT network_name UNIQUE (name);
ALTER TABLE ONLY a_release.network
    ADD CONSTRAINT network_pkey PRIMARY KEY (id);
ALTER TABLE ONLY a_release.paper
    ADD CONSTRAINT paper_pkey PRIMARY KEY (kind, name);
ALTER TABLE ONLY a_release.reply
    ADD CONSTRAINT reply_key PRIMARY KEY (key);
ALTER TABLE ONLY a_release.space
    ADD CONSTRAINT space_name UNIQUE (name);
ALTER TABLE ONLY a_release.space
    ADD CONSTRAINT space_pkey PRIMARY KEY (id);
ALTER TABLE ONLY a_release.waiting
    ADD CONSTRAINT waiting_claim UNIQUE (network, owner, slot);
ALTER TABLE ONLY a_release.waiting
    ADD CONSTRAINT waiting_pkey PRIMARY KEY (ticket);
CREATE INDEX change_of_address ON a_release.change USING btree (first, seq) WHERE ((first IS NOT NULL) AND (verb <> 'grant'::text));
CREATE UNIQUE INDEX holding_claim ON a_release.holding USING btree (owner, network, slot) WHERE (state < 2);
CREATE INDEX holding_due ON a_release.holding USING btree (space, until_us) WHERE (until_us IS NOT NULL);
CREATE INDEX holding_parting ON a_release.holding USING btree (owner) WHERE (state >= 2);
CREATE INDEX network_space ON a_release.network USING btree (space);
CREATE INDEX reply_age ON a_release.reply USING brin (at_us);
CREATE INDEX waiting_order ON a_release.waiting USING btree (space, ticket);
ALTER TABLE ONLY a_release.network
    ADD CONSTRAINT network_space_fkey FOREIGN KEY (space) REFERENCES a_release.space(id);
