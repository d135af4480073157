BEGIN TRANSACTION;
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
INSERT INTO "change" VALUES(1,1794784362088477,'network.add',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"description":"first","kind":"manual","labels":{"site":"north"},"mac_prefix":"aa:00:01","network":"net","tags":["t"],"uuid":"e6c60ae3-aa4a-44da-8bc5-24d851186de4"}');
INSERT INTO "change" VALUES(2,1794784362095446,'subnet.add',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"cidr":"192.0.2.0/24","dns":["192.0.2.2"],"gateway":"192.0.2.1","name":"four","network":"net","uuid":"41e8553e-c1c1-4487-87e3-f0b4ae65fb05","zones":["z1"]}');
INSERT INTO "change" VALUES(3,1794784362099210,'subnet.add',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"cidr":"2001:db8::/56","name":"six","network":"net","unit":64,"uuid":"307478b3-41c3-4cd6-9a08-5a3e0c72f520"}');
INSERT INTO "change" VALUES(4,1794784362103437,'pool.add',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"name":"small","network":"net","range":"192.0.2.10-192.0.2.14"}');
INSERT INTO "change" VALUES(5,1794784362107367,'pool.add',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"cooling_s":3600,"name":"big","network":"net","policy":"sticky","range":"192.0.2.100-192.0.2.200"}');
INSERT INTO "change" VALUES(6,1794784362115169,'pool.add',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"name":"blocks","network":"net","policy":"random","range":"2001:db8::/60"}');
INSERT INTO "change" VALUES(7,1794784362119331,'reserve',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"labels":{"by":"hand"},"network":"net","range":"192.0.2.150-192.0.2.159","reason":"printers"}');
INSERT INTO "change" VALUES(8,1794784362123400,'preallocation.add',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"address":"192.0.2.110","by":["token/ops","release"],"network":"net","owner":"vm/awaited"}');
INSERT INTO "change" VALUES(9,1794784362131336,'network.add',2,2,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"kind":"manual","network":"twin","space":"site","uuid":"15286073-c95c-4995-b15c-6c4e981a7c22"}');
INSERT INTO "change" VALUES(10,1794784362139146,'network.add',2,3,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"kind":"vip","network":"other","space":"site","uuid":"03bc5496-5767-482c-be10-214377c1d2d9"}');
INSERT INTO "change" VALUES(11,1794784362151304,'network.connect',1,1,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"group":"racks","link":"br0","mode":"bridged","network":"net"}');
INSERT INTO "change" VALUES(12,1794784362162218,'grant',1,1,X'04C000020A',X'04C000020A','vm/full','0',1,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(13,1794784362162218,'grant',1,1,X'04C000020B',X'04C000020B','vm/full','1',2,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(14,1794784362162218,'grant',1,1,X'04C000020C',X'04C000020C','vm/full','2',3,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(15,1794784362162218,'grant',1,1,X'04C000020D',X'04C000020D','vm/full','3',4,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(16,1794784362162218,'grant',1,1,X'04C000020E',X'04C000020E','vm/full','4',5,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(17,1794784362172587,'grant',1,1,X'04C000028C',X'04C000028C','vm/kept','',6,NULL,'{"by":["token/ops","release"],"carrier":"host-1","labels":{"a":"b"},"plan":"p"}');
INSERT INTO "change" VALUES(18,1794784362186640,'grant',1,1,X'04C000026F',X'04C000026F','vm/pending','',7,NULL,'{"by":["token/ops","release"],"state":"pending","until_us":1794787962186509}');
INSERT INTO "change" VALUES(19,1794784362191503,'grant',1,1,X'04C00002AA',X'04C00002AA','vm/cooled','',8,'deploy-1','{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(20,1794784362196533,'cool',1,1,X'04C00002AA',X'04C00002AA','vm/cooled','',8,'deploy-2','{"by":["token/ops","release"],"request":"deploy-1","since_us":1794784362191381,"until_us":1794787962196372}');
INSERT INTO "change" VALUES(21,1794784362202696,'grant',1,1,X'04C00002AF',X'04C00002AF','vm/before','nic0',9,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(22,1794784362207136,'transfer',1,1,X'04C00002AF',X'04C00002AF','vm/after','nic1',10,NULL,'{"by":["token/ops","release"],"from":"vm/before","from_slot":"nic0","since_us":1794784362202568}');
INSERT INTO "change" VALUES(23,1794784362214842,'grant',1,1,X'04C0000295',X'04C0000295','vm/draining','',11,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(24,1794784362217849,'modify',1,1,X'04C0000295',X'04C0000295','vm/draining','',11,NULL,'{"by":["token/ops","release"],"state":"draining"}');
INSERT INTO "change" VALUES(25,1794784362223177,'grant',1,1,X'0620010DB8000000000000000000000000',X'0620010DB800000000FFFFFFFFFFFFFFFF','pod/six','',12,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "change" VALUES(26,1794784362227860,'wait',1,1,NULL,NULL,'vm/waiting','',NULL,NULL,'{"by":["token/ops","release"],"ticket":1}');
INSERT INTO "change" VALUES(27,1794784362230177,'paper.write',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"by":["token/ops","release"],"kind":"instance","name":"vm","revision":1}');
CREATE TABLE former (
    network INTEGER NOT NULL,
    owner TEXT NOT NULL,
    slot TEXT NOT NULL,
    first BLOB NOT NULL,
    PRIMARY KEY (network, owner, slot)
) WITHOUT ROWID;
INSERT INTO "former" VALUES(1,'vm/cooled','',X'04C00002AA');
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
INSERT INTO "holding" VALUES(1,X'04C000020A',X'04C000020A',1,'vm/full','0',1,1,1794784362161678,NULL,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'04C000020B',X'04C000020B',1,'vm/full','1',1,2,1794784362161678,NULL,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'04C000020C',X'04C000020C',1,'vm/full','2',1,3,1794784362161678,NULL,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'04C000020D',X'04C000020D',1,'vm/full','3',1,4,1794784362161678,NULL,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'04C000020E',X'04C000020E',1,'vm/full','4',1,5,1794784362161678,NULL,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'04C000026F',X'04C000026F',1,'vm/pending','',0,7,1794784362186509,1794787962186509,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'04C000028C',X'04C000028C',1,'vm/kept','',1,6,1794784362172375,NULL,NULL,'{"by":["token/ops","release"],"carrier":"host-1","labels":{"a":"b"},"plan":"p"}');
INSERT INTO "holding" VALUES(1,X'04C0000295',X'04C0000295',1,'vm/draining','',2,11,1794784362214690,NULL,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'04C00002AA',X'04C00002AA',1,'vm/cooled','',3,8,1794784362191381,1794787962196372,'deploy-1','{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'04C00002AF',X'04C00002AF',1,'vm/after','nic1',1,10,1794784362207027,NULL,NULL,'{"by":["token/ops","release"]}');
INSERT INTO "holding" VALUES(1,X'0620010DB8000000000000000000000000',X'0620010DB800000000FFFFFFFFFFFFFFFF',1,'pod/six','',1,12,1794784362223060,NULL,NULL,'{"by":["token/ops","release"]}');
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL DEFAULT 0,
    oldest INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    next_network INTEGER NOT NULL DEFAULT 1
);
INSERT INTO "ledger" VALUES(1,27,0,12,4);
CREATE TABLE network (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    space INTEGER NOT NULL REFERENCES space (id),
    document TEXT NOT NULL
);
INSERT INTO "network" VALUES(1,'net',1,'{"uuid":"e6c60ae3-aa4a-44da-8bc5-24d851186de4","kind":"manual","mac_prefix":"aa:00:01","tags":["t"],"subnets":[{"cidr":"192.0.2.0/24","uuid":"41e8553e-c1c1-4487-87e3-f0b4ae65fb05","name":"four","gateway":"192.0.2.1","dns":["192.0.2.2"],"dhcp":false,"zones":["z1"],"unit":32,"keep_back":["broadcast","gateway","network"],"pools":[{"range":"192.0.2.10-192.0.2.14","name":"small","policy":"lowest","cooling_s":0,"retired":false,"labels":{},"description":""},{"range":"192.0.2.100-192.0.2.200","name":"big","policy":"sticky","cooling_s":3600,"retired":false,"labels":{},"description":""}],"reserved":[{"range":"192.0.2.150-192.0.2.159","reason":"printers","request":null,"labels":{"by":"hand"},"description":""}],"retired":false,"labels":{},"description":""},{"cidr":"2001:db8::/56","uuid":"307478b3-41c3-4cd6-9a08-5a3e0c72f520","name":"six","gateway":null,"dns":[],"dhcp":false,"zones":[],"unit":64,"keep_back":["gateway"],"pools":[{"range":"2001:db8::-2001:db8:0:f:ffff:ffff:ffff:ffff","name":"blocks","policy":"random","cooling_s":0,"retired":false,"labels":{},"description":""}],"reserved":[],"retired":false,"labels":{},"description":""}],"preallocations":[{"owner":"vm/awaited","slot":"","address":"192.0.2.110","request":null,"labels":{},"description":""}],"retired":false,"labels":{"site":"north"},"description":"first","connections":[{"group":"racks","mode":"bridged","link":"br0","vlan":""}],"serial":9,"created_us":1794784362087966,"modified_us":1794784362150730}');
INSERT INTO "network" VALUES(2,'twin',2,'{"uuid":"15286073-c95c-4995-b15c-6c4e981a7c22","kind":"manual","mac_prefix":null,"tags":[],"subnets":[],"preallocations":[],"retired":false,"labels":{},"description":"","connections":[],"serial":1,"created_us":1794784362131008,"modified_us":1794784362131008}');
INSERT INTO "network" VALUES(3,'other',2,'{"uuid":"03bc5496-5767-482c-be10-214377c1d2d9","kind":"vip","mac_prefix":null,"tags":[],"subnets":[],"preallocations":[],"retired":false,"labels":{},"description":"","connections":[],"serial":1,"created_us":1794784362138911,"modified_us":1794784362138911}');
CREATE TABLE paper (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO "paper" VALUES('instance','vm',1,'{"nics":[]}');
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
INSERT INTO "reply" VALUES('many',X'85CAE4F2FE50FE3AAD261F1C70323CFF',1794784362162150,NULL,NULL,NULL,NULL,NULL,NULL,'[{"holding": ["net", [1, 1, 20401095178, 20401095178, "vm/full", "0", "held", 1, 1794784362161678, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}, {"holding": ["net", [1, 1, 20401095179, 20401095179, "vm/full", "1", "held", 2, 1794784362161678, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}, {"holding": ["net", [1, 1, 20401095180, 20401095180, "vm/full", "2", "held", 3, 1794784362161678, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}, {"holding": ["net", [1, 1, 20401095181, 20401095181, "vm/full", "3", "held", 4, 1794784362161678, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}, {"holding": ["net", [1, 1, 20401095182, 20401095182, "vm/full", "4", "held", 5, 1794784362161678, null, null, {"by": ["token/ops", "release"]}], 24, "192.0.2.1"]}]');
INSERT INTO "reply" VALUES('one',X'97FC47D941CE9E4015B8D34D30CF26AD',1794784362172375,1,1,X'04C000028C',X'04C000028C',6,NULL,'["token/ops", "release"]');
CREATE TABLE space (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL DEFAULT 1
, queued INTEGER NOT NULL DEFAULT 0);
INSERT INTO "space" VALUES(1,'net',11,1);
INSERT INTO "space" VALUES(2,'site',3,0);
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
INSERT INTO "waiting" VALUES(1,1,1,'vm/waiting','',1794784362227641,1797376362227641,'{"pool":"small"}');
CREATE INDEX network_space ON network (space);
CREATE UNIQUE INDEX holding_claim ON holding (owner, network, slot) WHERE state < 2;
CREATE INDEX holding_parting ON holding (owner) WHERE state >= 2;
CREATE UNIQUE INDEX waiting_claim ON waiting (network, owner, slot);
CREATE INDEX waiting_order ON waiting (space, ticket);
CREATE INDEX reply_age ON reply (at_us);
CREATE INDEX holding_due ON holding (space, until_us) WHERE until_us IS NOT NULL;
CREATE INDEX change_of_address ON change (first, seq) WHERE first IS NOT NULL AND verb <> 'grant';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('space',2);
INSERT INTO "sqlite_sequence" VALUES('waiting',1);
COMMIT;
PRAGMA user_version = 4;
