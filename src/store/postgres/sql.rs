//! The statements: each is one atomic step, and one round trip.

/// The instant that counts: of the server's clock, or of a test's, which is the last parameter. A query of its own, which is
/// evaluated once, so that an index can be searched by it.
macro_rules! now {
    ($parameter:literal) => {
        concat!(
            "(SELECT COALESCE($",
            $parameter,
            "::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8))"
        )
    };
}

/// A session that is live: not over by the clock, nor by a sign-out of its user everywhere, nor by one of everybody (which is
/// kept as the epoch of the user without a name, whom nobody else can be).
macro_rules! live {
    ($session:literal, $parameter:literal) => {
        concat!(
            $session,
            ".until > ",
            now!($parameter),
            " AND NOT EXISTS (SELECT 1 FROM portcullis_subjects u WHERE u.subject = ",
            $session,
            ".subject AND u.epoch > ",
            $session,
            ".epoch) AND ",
            $session,
            ".authenticated_at >= COALESCE((SELECT epoch FROM portcullis_subjects WHERE subject = ''::bytea), 0)"
        )
    };
}

/// 1 id, 2 clock. Row, version, instant.
pub(super) const FIND: &str = concat!(
    "SELECT s.row, s.version, ",
    now!("2"),
    " FROM portcullis_sessions s WHERE s.id = $1 AND ",
    live!("s", "2")
);

/// The same, held until the end of the transaction.
pub(super) const FIND_AND_HOLD: &str = concat!(
    "SELECT s.row, s.version, ",
    now!("2"),
    " FROM portcullis_sessions s WHERE s.id = $1 AND ",
    live!("s", "2"),
    " FOR UPDATE"
);

/// 1 id, 2 clock. Row, instant, and each field; one line without a field if there is none.
pub(super) const LOAD: &str = concat!(
    "SELECT s.row, ",
    now!("2"),
    ", f.tag, f.value FROM portcullis_sessions s ",
    "LEFT JOIN portcullis_fields f ON f.session = s.id WHERE s.id = $1 AND ",
    live!("s", "2")
);

/// 1 id. Tag and value.
pub(super) const FIELDS: &str = "SELECT tag, value FROM portcullis_fields WHERE session = $1";

/// 1 id, 2 version, 3 row, 4 until, 5 due, 6 superseded, 7 and 8 fields to write, 9 fields to remove, 10 to 12 news, 13 the
/// channel, 14 clock, 15 when the user was authenticated. How many sessions were written: one, or none.
pub(super) const SWAP: &str = concat!(
    "WITH up AS (UPDATE portcullis_sessions s SET row = $3, version = s.version + 1, until = $4, due = $5, superseded = $6, ",
    "authenticated_at = $15 ",
    "WHERE s.id = $1 AND s.version = $2 AND ",
    live!("s", "14"),
    " RETURNING s.id), ",
    "put AS (INSERT INTO portcullis_fields (session, tag, value) SELECT up.id, f.tag, f.value ",
    "FROM up, unnest($7::bytea[], $8::bytea[]) AS f (tag, value) ",
    "ON CONFLICT (session, tag) DO UPDATE SET value = excluded.value), ",
    "cut AS (DELETE FROM portcullis_fields f USING up WHERE f.session = up.id AND f.tag = ANY ($9::bytea[])), ",
    "news AS (INSERT INTO portcullis_feed (at, kind, subject_of, value) SELECT ",
    now!("14"),
    ", n.kind, n.of, n.value ",
    "FROM up, unnest($10::int2[], $11::bytea[], $12::int8[]) AS n (kind, of, value)) ",
    "SELECT count(*), count(CASE WHEN cardinality($10::int2[]) > 0 THEN pg_notify($13, '') END) FROM up"
);

/// 1 id, 2 and 3 fields to write, 4 fields to remove, 5 clock. The row and the instant, if it took them.
///
/// The lock holds off whoever gives the session a newer id at this moment, and is held off by him.
pub(super) const PUT: &str = concat!(
    "WITH s AS MATERIALIZED (SELECT s.id, s.row FROM portcullis_sessions s WHERE s.id = $1 AND NOT s.superseded AND ",
    live!("s", "5"),
    " FOR SHARE), ",
    "put AS (INSERT INTO portcullis_fields (session, tag, value) SELECT s.id, f.tag, f.value ",
    "FROM s, unnest($2::bytea[], $3::bytea[]) AS f (tag, value) ",
    "ON CONFLICT (session, tag) DO UPDATE SET value = excluded.value), ",
    "cut AS (DELETE FROM portcullis_fields f USING s WHERE f.session = s.id AND f.tag = ANY ($4::bytea[])) ",
    "SELECT s.row, ",
    now!("5"),
    " FROM s"
);

/// 1 id, 2 row, 3 until, 4 due, 5 superseded, 6 predecessor, 7 subject, 8 epoch, 9 created at, 10 and 11 fields, 12
/// authenticated at. Fails if the id is taken.
pub(super) const INSERT: &str = concat!(
    "WITH s AS (INSERT INTO portcullis_sessions (id, row, version, until, due, superseded, predecessor, subject, epoch, ",
    "created_at, authenticated_at) VALUES ($1, $2, 0, $3, $4, $5, $6, $7, $8, $9, $12) RETURNING id) ",
    "INSERT INTO portcullis_fields (session, tag, value) SELECT s.id, f.tag, f.value ",
    "FROM s, unnest($10::bytea[], $11::bytea[]) AS f (tag, value)"
);

/// 1 id, 2 the longest chain, 3 the channel, 4 clock. Ends the session and those whose newer id it is; whether it was live.
pub(super) const END: &str = concat!(
    "WITH RECURSIVE chain AS (SELECT s.id, s.predecessor, 1 AS depth FROM portcullis_sessions s WHERE s.id = $1 ",
    "UNION ALL SELECT s.id, s.predecessor, c.depth + 1 FROM portcullis_sessions s JOIN chain c ON s.id = c.predecessor ",
    "WHERE c.depth < $2), ",
    "gone AS (DELETE FROM portcullis_sessions s USING chain c WHERE s.id = c.id RETURNING s.id, (",
    live!("s", "4"),
    ") AS live), ",
    "news AS (INSERT INTO portcullis_feed (at, kind, subject_of, value) SELECT ",
    now!("4"),
    ", 1, n.id, 0 FROM ",
    "(SELECT $1::bytea AS id UNION SELECT predecessor FROM chain WHERE predecessor IS NOT NULL) n) ",
    "SELECT COALESCE(bool_or(gone.live AND gone.id = $1), false), ",
    "(SELECT count(pg_notify($3, ''))) FROM gone"
);

/// 1 subject, 2 the epoch to reach (none: one more than now), 3 the channel, 4 clock. How many were live.
pub(super) const END_ALL: &str = concat!(
    "WITH up AS (INSERT INTO portcullis_subjects AS u (subject, epoch) VALUES ($1, COALESCE($2::int8, 1)) ",
    "ON CONFLICT (subject) DO UPDATE SET epoch = GREATEST(u.epoch, COALESCE($2::int8, u.epoch + 1)) RETURNING epoch), ",
    "gone AS (DELETE FROM portcullis_sessions s USING up WHERE s.subject = $1 AND s.epoch < COALESCE($2::int8, up.epoch) ",
    "RETURNING s.until > ",
    now!("4"),
    " AND NOT s.superseded AS live), ",
    "news AS (INSERT INTO portcullis_feed (at, kind, subject_of, value) ",
    "SELECT ",
    now!("4"),
    ", 3, $1, COALESCE($2::int8, up.epoch) FROM up) ",
    "SELECT count(*) FILTER (WHERE gone.live), (SELECT count(pg_notify($3, ''))) FROM gone"
);

/// 1 the instant before which everybody is signed out, 2 the channel, 3 clock.
pub(super) const END_BEFORE: &str = concat!(
    "WITH up AS (INSERT INTO portcullis_subjects AS u (subject, epoch) VALUES (''::bytea, $1) ",
    "ON CONFLICT (subject) DO UPDATE SET epoch = GREATEST(u.epoch, excluded.epoch)), ",
    "news AS (INSERT INTO portcullis_feed (at, kind, subject_of, value) VALUES (",
    now!("3"),
    ", 5, ''::bytea, $1)) SELECT count(pg_notify($2, ''))"
);

/// 1 subject. Its epoch.
pub(super) const EPOCH: &str = "SELECT epoch FROM portcullis_subjects WHERE subject = $1";

/// 1 subject, 2 clock. Id and row of the user's sessions, oldest first.
pub(super) const LIST: &str = concat!(
    "SELECT s.id, s.row, ",
    now!("2"),
    " FROM portcullis_sessions s WHERE s.subject = $1 AND NOT s.superseded AND ",
    live!("s", "2"),
    " ORDER BY s.created_at, s.id"
);

/// 1 to 3 news, 4 the channel, 5 clock.
pub(super) const PUBLISH: &str = concat!(
    "WITH news AS (INSERT INTO portcullis_feed (at, kind, subject_of, value) SELECT ",
    now!("5"),
    ", n.kind, n.of, n.value ",
    "FROM unnest($1::int2[], $2::bytea[], $3::int8[]) AS n (kind, of, value)) SELECT count(pg_notify($4, ''))"
);

/// 1 window, 2 clock. What the reader has seen then, and the entries; one line without an entry if there is none.
pub(super) const WINDOW: &str = concat!(
    "SELECT p.snapshot, f.at, f.kind, f.subject_of, f.value FROM (SELECT pg_current_snapshot()::text AS snapshot) p ",
    "LEFT JOIN portcullis_feed f ON f.at >= ",
    now!("2"),
    " - $1 ORDER BY f.number"
);

/// 1 what the reader has seen. The same for what it has not.
pub(super) const AFTER: &str = concat!(
    "SELECT p.snapshot, f.at, f.kind, f.subject_of, f.value FROM (SELECT pg_current_snapshot()::text AS snapshot) p ",
    "LEFT JOIN portcullis_feed f ON f.xid >= pg_snapshot_xmin($1::pg_snapshot) ",
    "AND NOT pg_visible_in_snapshot(f.xid, $1::pg_snapshot) ",
    // Entries of a database that was restored from a copy of another are no news for ever.
    "AND f.xid < pg_snapshot_xmax(p.snapshot::pg_snapshot) ORDER BY f.number"
);

/// 1 batch, 2 clock. Deletes sessions that are over. Those that somebody holds at this moment come next time.
pub(super) const PURGE: &str = concat!(
    "DELETE FROM portcullis_sessions WHERE id IN (SELECT id FROM portcullis_sessions WHERE due <= ",
    now!("2"),
    " AND until <= ",
    now!("2"),
    " ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED)"
);

/// 1 window, 2 clock. Deletes what is older than the largest window that anybody purges with.
pub(super) const PURGE_FEED: &str = concat!(
    "WITH w AS (INSERT INTO portcullis_meta AS m (name, value) VALUES ('window', int8send($1)) ",
    "ON CONFLICT (name) DO UPDATE SET value = GREATEST(m.value, excluded.value) RETURNING value) ",
    "DELETE FROM portcullis_feed f USING w ",
    "WHERE f.at < ",
    now!("2"),
    " - ('x' || encode(w.value, 'hex'))::bit(64)::int8"
);

/// 1 clock.
pub(super) const NOW: &str = concat!("SELECT ", now!("1"));
