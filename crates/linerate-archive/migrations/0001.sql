-- Times are milliseconds since 1970-01-01 UTC, rates bit/s, durations nanoseconds.

CREATE TABLE pair (
    pair INTEGER PRIMARY KEY,
    task TEXT NOT NULL,
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    UNIQUE (task, sender, receiver)
) STRICT;

CREATE TABLE run (
    run INTEGER PRIMARY KEY,
    -- A UUID of version 7: its order is that of `due`.
    id TEXT NOT NULL UNIQUE,
    pair INTEGER NOT NULL REFERENCES pair (pair),
    class TEXT NOT NULL,
    due INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('measured', 'failed', 'not_run', 'invalid')),
    stage TEXT,
    reason TEXT,
    why TEXT,
    -- JSON: the tests that held what this one needed.
    held TEXT,
    goodput REAL,
    low REAL,
    high REAL,
    whole REAL,
    ramp INTEGER,
    retransmitted REAL,
    lost REAL,
    rtt INTEGER,
    sender_cpu REAL,
    receiver_cpu REAL,
    with_traffic INTEGER NOT NULL DEFAULT 0,
    -- The version of the definitions by which the figures were computed; 0 = not known.
    computed_by INTEGER NOT NULL,
    -- SHA-256 of the record's JSON, in hexadecimal digits; its file is raw/ab/HASH.json.zst.
    record TEXT,
    -- Bytes of that file.
    record_bytes INTEGER,
    -- When retention removed the record.
    record_gone INTEGER,
    -- A test that did not measure has no figure.
    CHECK ((outcome = 'measured') = (goodput IS NOT NULL)),
    CHECK (outcome = 'measured' OR coalesce(low, high, whole, retransmitted, lost, sender_cpu, receiver_cpu) IS NULL),
    CHECK (outcome = 'measured' OR coalesce(ramp, rtt) IS NULL),
    CHECK ((low IS NULL) = (high IS NULL)),
    CHECK ((record IS NULL) = (record_bytes IS NULL))
) STRICT;
CREATE INDEX run_by_pair ON run (pair, id);
CREATE INDEX run_by_record ON run (record) WHERE record IS NOT NULL;

CREATE TABLE finding (
    run INTEGER NOT NULL REFERENCES run (run),
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (run, place)
) STRICT, WITHOUT ROWID;

-- Why retention leaves a run's record alone.
CREATE TABLE kept (
    run INTEGER NOT NULL REFERENCES run (run),
    why TEXT NOT NULL,
    PRIMARY KEY (run, why)
) STRICT, WITHOUT ROWID;

CREATE TABLE pair_state (
    pair INTEGER PRIMARY KEY REFERENCES pair (pair),
    latest INTEGER NOT NULL REFERENCES run (run),
    measured INTEGER REFERENCES run (run),
    failures INTEGER NOT NULL
) STRICT;

CREATE TABLE day (
    pair INTEGER NOT NULL REFERENCES pair (pair),
    -- Days since 1970-01-01 UTC.
    day INTEGER NOT NULL,
    measured INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    not_run INTEGER NOT NULL,
    invalid INTEGER NOT NULL,
    -- Quantiles of goodput; NULL where nothing was measured.
    least REAL,
    quarter REAL,
    median REAL,
    three_quarters REAL,
    most REAL,
    PRIMARY KEY (pair, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE facts (
    hash TEXT PRIMARY KEY,
    json BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- A row where the facts of a host became others.
CREATE TABLE host_facts (
    host TEXT NOT NULL,
    at INTEGER NOT NULL,
    hash TEXT NOT NULL REFERENCES facts (hash),
    PRIMARY KEY (host, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE alert (
    id TEXT PRIMARY KEY,
    task TEXT NOT NULL,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    json TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_by_state ON alert (state, since);

CREATE TABLE silence (
    id TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    json TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    event INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL
) STRICT;

-- Counts of what happened since the archive was made.
CREATE TABLE counted (
    what TEXT PRIMARY KEY,
    times INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
