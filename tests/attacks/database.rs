//! The attacker has the database: he reads it (A59), or writes to it (A78).

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use sqlx::{Column as _, Connection as _, Row as _, SqliteConnection, sqlite::SqliteRow};

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{Browser, FRESH, Lab},
    tools::{Pair, assert_nobody, user_of},
};

async fn open(pair: &Pair) -> SqliteConnection {
    SqliteConnection::connect(&format!("sqlite://{}", pair.file().display())).await.unwrap()
}

const TABLES: [&str; 5] = [
    "portcullis_sessions",
    "portcullis_fields",
    "portcullis_subjects",
    "portcullis_revocations",
    "portcullis_meta",
];

/// Every value of every table, as bytes.
async fn values(connection: &mut SqliteConnection) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    for table in TABLES {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!("SELECT * FROM {table}")))
            .fetch_all(&mut *connection)
            .await
            .unwrap();
        for row in &rows {
            values.extend((0..row.columns().len()).map(|at| bytes(row, at)));
        }
    }
    values
}

fn bytes(row: &SqliteRow, at: usize) -> Vec<u8> {
    assert!(!row.columns()[at].name().is_empty());
    row.try_get::<Vec<u8>, _>(at)
        .or_else(|_| row.try_get::<i64, _>(at).map(|number| number.to_be_bytes().to_vec()))
        .or_else(|_| row.try_get::<String, _>(at).map(String::into_bytes))
        .unwrap_or_default()
}

/// Nothing in a copied database lets anybody in, and no user, value or credential can be read in it.
#[tokio::test]
async fn a59_a_copied_database() {
    let pair = Pair::start();
    let mut browser = pair.one.browser();
    browser.visit("POST", "/login", "user=alice-wonder&role=red-queen").await;
    browser.visit("POST", "/data/colour-key", "emerald-value").await;
    pair.pass(FRESH).await;
    browser.who().await;
    let mut connection = open(&pair).await;
    let values = values(&mut connection).await;
    assert!(values.len() > 20, "something was read");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let stranger = pair.one.browser();
    for value in values.iter().filter(|value| value.len() >= 8) {
        for text in [BASE64.encode_to_string(value), hex(value)] {
            assert_nobody(&stranger.holding(Some(&text), None), "a value as session cookie").await;
            assert_nobody(&stranger.holding(None, Some(&text)), "a value as token").await;
        }
    }
    // The file as a whole, with its journal: no text of the user's, no credential, no part of one.
    let mut file = std::fs::read(pair.file()).unwrap();
    file.extend(std::fs::read(pair.file().with_extension("db-wal")).unwrap_or_default());
    let holds = |needle: &[u8]| file.windows(needle.len()).any(|part| part == needle);
    for text in ["alice-wonder", "red-queen", "colour-key", "emerald-value", "Firefox"] {
        assert!(!holds(text.as_bytes()), "{text}");
    }
    for name in [SESSION, RENEWAL] {
        let value = browser.value(name);
        for part in value.split('.') {
            let raw = BASE64.decode_to_vec(part).unwrap();
            for needle in [part.as_bytes(), &raw].iter().flat_map(|bytes| bytes.chunks_exact(16)) {
                // Zeros in a sealed plaintext would not do as a witness.
                assert!(!holds(needle), "a part of {name}");
            }
        }
    }
    // What the token says of the id is not what the session lies under.
    let claims: serde_json::Value =
        serde_json::from_str(&crate::forge::Forger::claims_of(&browser.value(RENEWAL))).unwrap();
    let sid = BASE64.decode_to_vec(claims["sid"].as_str().unwrap()).unwrap();
    assert!(!holds(&sid), "the store hashes once more");
}

/// Two users with a value each, known to both instances, and the connection of somebody who can write.
async fn victims(pair: &Pair) -> (Browser, Browser, SqliteConnection) {
    let mut alice = pair.one.signed_in("alice").await;
    alice.visit("POST", "/data/colour", "green").await;
    let mut bob = pair.one.signed_in("bob").await;
    bob.visit("POST", "/data/colour", "blue").await;
    (alice, bob, open(pair).await)
}

async fn run(connection: &mut SqliteConnection, sql: &str) {
    let done = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
    assert!(done.rows_affected() > 0, "{sql}");
}

fn tampered(pair: &Pair) -> usize {
    pair.one.told("record_tampered") + pair.two.told("record_tampered")
}

/// Any column of a row changed by hand: the row counts as gone, with an alarm, and nobody gets more than he had.
#[tokio::test]
async fn a78_a_changed_row() {
    for (change, what) in [
        ("deadline = deadline + 1", "a later deadline"),
        ("ends_at = ends_at + 86400000", "a later end"),
        ("issued = issued + 1", "a higher generation"),
        ("floor = 0", "a lower floor"),
        ("previous = floor", "another token before"),
        ("rotated_at = rotated_at + 1000", "a longer grace"),
        ("authenticated_at = authenticated_at + 1000", "a later authentication"),
        ("created_at = created_at - 1", "another beginning"),
        ("renewed_at = renewed_at + 1", "another renewal"),
        ("remembered = 1", "remembered"),
        ("device = zeroblob(82)", "device"),
        ("epoch = epoch + 1", "a higher epoch"),
        ("claims_version = claims_version + 1", "newer claims"),
        ("upgrades = upgrades + 1", "sockets"),
        ("superseded_at = NULL, subject = NULL", "no user"),
        ("subject = zeroblob(16)", "another user"),
        ("sealed = zeroblob(length(sealed))", "another sealed part"),
        ("sealed = substr(sealed, 1, 20)", "a part of the sealed part"),
        ("mac = zeroblob(16)", "no MAC"),
        ("key = zeroblob(4)", "another key"),
        ("predecessor = zeroblob(32)", "an older id"),
        ("successor = zeroblob(32)", "a newer id"),
    ] {
        let pair = Pair::start();
        let (alice, _, mut connection) = victims(&pair).await;
        run(&mut connection, &format!("UPDATE portcullis_sessions SET {change}")).await;
        // While her cookie is fresh the row is read for its data, then for a renewal.
        assert_eq!(alice.ask("GET", "/data/colour", "").await.status, 404, "{what}: its data");
        assert!(tampered(&pair) >= 1, "{what}: nobody was told");
        let told = tampered(&pair);
        pair.pass(FRESH).await;
        let answer = assert_nobody(&alice, what).await;
        assert_eq!(answer.status, 200);
        assert!(tampered(&pair) > told, "{what}: nobody was told of the renewal");
    }
}

/// Rows, sealed parts and fields put where others were.
#[tokio::test]
async fn a78_rows_and_fields_pasted_elsewhere() {
    // Bob's whole row under Alice's id, and his sealed part in her row.
    for columns in [
        "previous, floor, issued, rotated_at, created_at, renewed_at, authenticated_at, deadline, ends_at, subject, epoch, \
         claims_version, key, sealed, mac",
        "sealed",
        "sealed, key",
        "subject",
    ] {
        let pair = Pair::start();
        let (alice, bob, mut connection) = victims(&pair).await;
        let ids: Vec<(Vec<u8>,)> =
            sqlx::query_as("SELECT id FROM portcullis_sessions ORDER BY created_at, id")
                .fetch_all(&mut connection)
                .await
                .unwrap();
        assert_eq!(ids.len(), 2);
        let [one, two] = [&ids[0].0, &ids[1].0];
        let pasted = format!(
            "UPDATE portcullis_sessions SET ({columns}) =
             (SELECT {columns} FROM portcullis_sessions WHERE id = ?2) WHERE id = ?1"
        );
        let pasted = sqlx::query(sqlx::AssertSqlSafe(pasted)).bind(one).bind(two);
        pasted.execute(&mut connection).await.unwrap();
        pair.pass(FRESH).await;
        let who = [user_of(&alice).await, user_of(&bob).await];
        assert!(who[0].as_deref() != Some("bob") && who[1].as_deref() != Some("alice"), "{columns}: {who:?}");
        assert!(who.iter().any(Option::is_none), "{columns}: the changed row counts as gone");
        assert!(tampered(&pair) >= 1, "{columns}");
    }
    // Bob's field in Alice's session, and one of her fields under another's name.
    let pair = Pair::start();
    let (mut alice, bob, mut connection) = victims(&pair).await;
    alice.visit("POST", "/data/role", "reader").await;
    run(
        &mut connection,
        "UPDATE portcullis_fields SET value = (SELECT value FROM portcullis_fields AS other
         WHERE other.session <> portcullis_fields.session OR other.tag <> portcullis_fields.tag LIMIT 1)",
    )
    .await;
    let mut read = Vec::new();
    for (browser, path) in [(&alice, "/data/colour"), (&alice, "/data/role"), (&bob, "/data/colour")] {
        read.push(browser.ask("GET", path, "").await);
    }
    let right = ["green", "reader", "blue"];
    for (answer, right) in read.iter().zip(right) {
        assert!(answer.status == 404 || answer.body == right, "{answer:?}");
    }
    assert!(
        read.iter().filter(|answer| answer.status == 404).count() >= 2,
        "what was pasted reads as nothing"
    );
    assert!(tampered(&pair) >= 1);
}

/// A row under an id that was never issued, and one that was logged out put back under its id by hand with another
/// deadline: neither lets anybody in.
#[tokio::test]
async fn a78_a_row_made_by_hand() {
    let pair = Pair::start();
    let (mut alice, _, mut connection) = victims(&pair).await;
    sqlx::raw_sql("CREATE TABLE copy AS SELECT * FROM portcullis_sessions")
        .execute(&mut connection)
        .await
        .unwrap();
    let copy = alice.clone();
    alice.visit("POST", "/logout", "").await;
    // Whoever can write can make a new instance forget the logout as well; the whole row comes back with a later deadline.
    run(&mut connection, "DELETE FROM portcullis_revocations").await;
    pair.pass(FRESH * 3).await;
    run(&mut connection, "UPDATE copy SET deadline = deadline + 3600000, ends_at = ends_at + 3600000").await;
    run(&mut connection, "INSERT OR IGNORE INTO portcullis_sessions SELECT * FROM copy").await;
    let third = pair.third().await;
    assert_nobody(&copy.at(&third), "a row put back with a later deadline").await;
    assert_eq!(third.told("record_tampered"), 1);
    let made = "INSERT INTO portcullis_sessions SELECT zeroblob(32), previous, floor, issued, rotated_at, created_at, \
                renewed_at, authenticated_at, deadline, ends_at, superseded_at, predecessor, successor, subject, epoch, \
                claims_version, upgrades, remembered, device, key, sealed, mac FROM copy LIMIT 1";
    run(&mut connection, made).await;
    let again = third.signed_in("alice").await;
    let list = again.ask("GET", "/sessions", "").await.json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "what was made by hand is nobody's session: {list}");
}

/// Handles, keys and users with every character that a store or a query could take for its own (A56).
#[tokio::test]
async fn a56_store_keys() {
    let pair = Pair::start();
    let mut alice = pair.one.signed_in("alice").await;
    let victim = pair.one.signed_in("bob").await;
    let odd = [
        "*",
        "?",
        "a:b",
        "..",
        "../..",
        "%2e%2e",
        "%00",
        "%0d%0a",
        "'%20OR%201=1%20--",
        "\"",
        "%25",
        "_",
        "[a-z]",
        "\\",
        "portcullis_sessions",
        "%F0%9F%94%91",
        &"k".repeat(3000),
    ]
    .map(str::to_owned);
    for key in &odd {
        let handle = alice.ask("DELETE", &format!("/sessions/{key}"), "").await;
        assert!(matches!(handle.status.as_u16(), 400 | 404), "{key}: {}", handle.status);
        if key.starts_with('.') || key.contains("%2e") || key.contains(['?', '"', '\\', '[']) {
            continue;
        }
        let written = alice.visit("POST", &format!("/data/{key}"), key).await;
        assert_eq!(written.status, 204, "{key}");
    }
    for key in odd
        .iter()
        .filter(|key| !key.starts_with('.') && !key.contains("%2e") && !key.contains(['?', '"', '\\', '[']))
    {
        assert_eq!(&alice.ask("GET", &format!("/data/{key}"), "").await.body, key, "each under its own name");
        assert_eq!(victim.ask("GET", &format!("/data/{key}"), "").await.status, 404);
    }
    // Users whose names could match others'.
    for user in ["b*", "b%25", "_ob", "bob%00", "bob'%20--", "BOB", "bob%20", "%20bob", "b%C3%B6b"] {
        let mut browser = pair.one.browser();
        let login = browser.visit("POST", "/login", &format!("user={user}")).await;
        if login.status == 422 {
            continue;
        }
        assert_eq!(login.status, 204);
        assert_eq!(
            browser.ask("GET", "/sessions", "").await.json().as_array().map(Vec::len),
            Some(1),
            "{user}"
        );
        assert_eq!(browser.visit("POST", "/logout-everywhere", "").await.status, 204);
        assert_eq!(user_of(&victim).await.as_deref(), Some("bob"), "{user} is somebody else");
    }
    let handle = "A".repeat(22);
    for id in ["'; DROP TABLE portcullis_sessions; --", "*", "0"] {
        assert_nobody(&pair.one.browser().holding(Some(id.replace(';', "").as_str()), Some(&handle)), id)
            .await;
    }
    let mut connection = open(&pair).await;
    assert!(values(&mut connection).await.len() > 10, "the tables stand");
}

/// An honest token of another generation, in all but its MAC and signature.
fn unauthentic(token: &str, generation: usize) -> String {
    let claims = crate::forge::Forger::claims_of(token);
    let json: serde_json::Value = serde_json::from_str(&claims).unwrap();
    let claims = claims.replace(&json["gen"].to_string(), &(generation + 1).to_string());
    let payload = format!("{},\"jti\":\"{}\"}}", claims.strip_suffix('}').unwrap(), "A".repeat(22));
    let (header, _) = token.split_once('.').unwrap();
    format!("{header}.{}.{}", BASE64.encode_to_string(payload), BASE64.encode_to_string([1; 64]))
}

/// Bots: neither a stranger nor a forgery makes a row, or asks the store (A55).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a55_bots() {
    let pair = Pair::start();
    let lab: &Lab = &pair.one;
    let mut connection = open(&pair).await;
    let rows = async |connection: &mut SqliteConnection| {
        let (rows,): (i64,) =
            sqlx::query_as("SELECT COUNT(*) FROM portcullis_sessions").fetch_one(connection).await.unwrap();
        rows
    };
    let honest = lab.signed_in("alice").await;
    let (session, token) = (honest.value(SESSION), honest.value(RENEWAL));
    // Whoever asked the store for a session now, to read or to write, would get a 503.
    sqlx::raw_sql("ALTER TABLE portcullis_sessions RENAME TO away").execute(&mut connection).await.unwrap();
    for path in ["/", "/recent", "/data/x", "/sessions", "/nowhere"] {
        for number in 0..100_usize {
            let stranger = lab.browser();
            let at = number % session.len();
            let mut forged = session.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            let bad_token = unauthentic(&token, number);
            for browser in [
                stranger.clone(),
                stranger.holding(Some(&forged), Some(&bad_token)),
                stranger.holding(None, Some("x")),
            ] {
                let answer = browser.ask("GET", path, "").await;
                assert!(answer.status.as_u16() < 500, "{path}: the store was asked");
                assert!(answer.cookies.is_empty());
            }
        }
    }
    sqlx::raw_sql("ALTER TABLE away RENAME TO portcullis_sessions").execute(&mut connection).await.unwrap();
    assert_eq!(lab.told("store_unavailable"), 0);
    assert_eq!(rows(&mut connection).await, 1, "hers alone");
}
