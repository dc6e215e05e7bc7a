//! What lies in a Redis or a PostgreSQL, copied (A59) and changed by hand (A78).

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{Browser, FRESH, Lab},
    outage::on_real_servers,
    stage::{Server, two_instances},
};

on_real_servers!(a59_a_copied_store, a78_rows_and_fields_changed_by_hand);

async fn who_has_a_secret(lab: &Lab, user: &str) -> Browser {
    let mut browser = lab.signed_in(user).await;
    assert_eq!(browser.visit("POST", "/data/secret", "correct horse").await.status, 204);
    browser
}

/// Everything in the store is tried as a cookie; and nothing in it tells a name, an address or a word of the data.
async fn a59_a_copied_store(server: Server) {
    let lab = two_instances(&server.url(), &[]);
    let browser = who_has_a_secret(&lab, "alice.liddell").await;
    let values = server.dump();
    assert!(values.len() >= 3, "there is something to copy");
    for value in &values {
        for word in ["alice", "liddell", "correct horse", "secret", "Firefox", "127.0.0.1"] {
            let holds = value.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
            assert!(!holds, "{word} lies in the store");
        }
        for held in [browser.value(SESSION), browser.value(RENEWAL)] {
            assert!(!value.windows(16).any(|part| held.as_bytes().windows(16).any(|other| other == part)));
        }
        let text: String =
            String::from_utf8_lossy(value).chars().filter(char::is_ascii_graphic).take(1000).collect();
        let encoded = forge(value);
        for cookie in [text.replace([';', ',', '"'], ""), encoded] {
            let thief = browser.holding(Some(&cookie), Some(&cookie));
            let answer = thief.ask("GET", "/", "").await;
            assert_eq!(answer.user(), None);
        }
    }
}

/// Base64url, as a cookie would have it.
fn forge(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3).take(600) {
        let number =
            chunk.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            text.push(char::from(DIGITS[(number >> (18 - 6 * digit)) as usize & 63]));
        }
    }
    text
}

async fn a78_rows_and_fields_changed_by_hand(server: Server) {
    let lab = two_instances(&server.url(), &[]);
    // Each tampering ends the one it touches, says so, and lets nobody in.
    for tampering in [Tampering::Row, Tampering::SwappedRows, Tampering::NoRow] {
        server.wipe();
        let alice = who_has_a_secret(&lab, "alice").await;
        let bob = who_has_a_secret(&lab, "bob").await;
        let before = lab.told("record_tampered");
        server.tamper(tampering);
        let answer = alice.ask("GET", "/data/secret", "").await;
        assert_eq!(answer.status, 404, "{tampering:?}: the data of a tampered row is read by nobody");
        lab.pass(FRESH).await;
        let answer = alice.ask("GET", "/", "").await;
        assert_eq!(answer.user(), None, "{tampering:?}");
        assert!(lab.told("record_tampered") > before, "{tampering:?}: it is said");
        assert_eq!(bob.ask("GET", "/", "").await.user(), None, "{tampering:?}: nor the other");
    }
}

/// What is done to the rows of a store in which two people are signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tampering {
    /// A bit of a deadline is flipped in each.
    Row,
    /// Each gets the other's.
    SwappedRows,
    /// Each becomes something that is no row at all.
    NoRow,
}

/// A row, changed.
fn changed(row: &[u8], other: &[u8], tampering: Tampering) -> Vec<u8> {
    // Version, flags, key id and MAC come before the numbers; the deadline is the eighth.
    const DEADLINE: usize = 2 + 4 + 16 + 7 * 8;
    let mut changed = row.to_vec();
    match tampering {
        Tampering::Row => changed[DEADLINE + 4] ^= 1,
        Tampering::SwappedRows => changed = other.to_vec(),
        Tampering::NoRow => changed = b"not a row".to_vec(),
    }
    changed
}

impl Server {
    /// Every value in it.
    fn dump(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Redis(redis) => {
                let keys = redis.cli(&["keys", "*"]);
                let sessions = keys.lines().filter(|key| key.contains(":s:"));
                sessions.flat_map(|key| self.hash(key).into_iter().map(|(_, value)| value)).collect()
            }
            Self::Postgres(postgres) => {
                let rows = postgres.rows("SELECT encode(row, 'hex') FROM lab.portcullis_sessions");
                let fields = postgres.rows("SELECT encode(value, 'hex') FROM lab.portcullis_fields");
                let users = postgres.rows("SELECT encode(subject, 'hex') FROM lab.portcullis_sessions");
                rows.iter().chain(&fields).chain(&users).map(|line| from_hex(line)).collect()
            }
        }
    }

    fn wipe(&self) {
        match self {
            Self::Redis(redis) => {
                for key in redis.cli(&["keys", "*:s:*"]).lines() {
                    redis.cli(&["del", key]);
                }
            }
            Self::Postgres(postgres) => postgres.sql("DELETE FROM lab.portcullis_sessions"),
        }
    }

    fn tamper(&self, tampering: Tampering) {
        match self {
            Self::Redis(redis) => {
                let keys = redis.cli(&["keys", "*:s:*"]);
                let keys: Vec<_> = keys.lines().collect();
                let rows: Vec<_> = keys.iter().map(|key| self.row(key)).collect();
                assert_eq!(rows.len(), 2);
                for (number, key) in keys.iter().enumerate() {
                    redis.set_field(key, "row", &changed(&rows[number], &rows[1 - number], tampering));
                }
            }
            Self::Postgres(postgres) => {
                let lines = postgres.rows(
                    "SELECT encode(id, 'hex') || ' ' || encode(row, 'hex') FROM lab.portcullis_sessions",
                );
                let rows: Vec<_> = lines
                    .iter()
                    .map(|line| line.split_once(' ').unwrap())
                    .map(|(id, row)| (id, from_hex(row)))
                    .collect();
                assert_eq!(rows.len(), 2);
                for (number, (id, row)) in rows.iter().enumerate() {
                    let new = changed(row, &rows[1 - number].1, tampering);
                    let new: String = new.iter().map(|byte| format!("{byte:02x}")).collect();
                    postgres.sql(&format!(
                        "UPDATE lab.portcullis_sessions SET row = decode('{new}', 'hex') WHERE id = decode('{id}', 'hex')"
                    ));
                }
            }
        }
    }

    fn row(&self, key: &str) -> Vec<u8> {
        self.hash(key).into_iter().find(|(name, _)| name == "row").unwrap().1
    }

    fn hash(&self, key: &str) -> Vec<(String, Vec<u8>)> {
        let Self::Redis(redis) = self else { return Vec::new() };
        redis.hash(key)
    }
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.trim().chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair.get(1).unwrap_or(&0)).unwrap()).collect()
}
