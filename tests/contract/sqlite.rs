//! What is promised of the SQLite store alone: what becomes of its file.

use std::{fs, path::Path, sync::Arc};

use portcullis::{
    SqliteStore,
    clock::{Clock, ManualClock, Timestamp},
    store::{FeedPosition, NewSession, Revocation, Row, Store},
};
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    scratch::Scratch,
    stage::{FEED_DELAY, TEST_LIMIT, WINDOW, id, row, session, subject, tag, within},
};

const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

async fn open(path: &Path) -> Result<SqliteStore, String> {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(NOW));
    let opened = within(TEST_LIMIT, SqliteStore::open_with_clock(path, clock)).await;
    opened.map_err(|error| error.to_string())
}

#[tokio::test]
async fn reopening_the_file_finds_everything() {
    let scratch = Scratch::new();
    let store = open(&scratch.file("sessions.db")).await.unwrap();
    store.claim_index([1; 16]).unwrap();
    store.revoke_subject(&subject(1)).await.unwrap();
    let fields = vec![(tag(1), b"cart".to_vec())];
    let row = Row { subject: Some(subject(1)), ..row(NOW) };
    let created = store.create(NewSession { fields: fields.clone(), ..session(id(1), row) }).await.unwrap();
    store.revoke(&id(2)).await.unwrap();
    let feed = store.subscribe(FeedPosition::Window(WINDOW)).await.unwrap();
    drop(store);

    let store = open(&scratch.file("sessions.db")).await.unwrap();
    assert_eq!(created.epoch, 1);
    assert_eq!(store.load(&id(1)).await.unwrap(), Some((created.clone(), fields)));
    assert_eq!(store.list_subject(&subject(1)).await.unwrap(), [(id(1), created)]);
    assert_eq!(store.subscribe(FeedPosition::Window(WINDOW)).await.unwrap(), feed);
    assert!(store.claim_index([2; 16]).is_err());
    assert!(store.claim_index([1; 16]).is_ok());
    store.revoke_subject(&subject(1)).await.unwrap();
    let batch = within(FEED_DELAY, store.subscribe(feed.position)).await.unwrap();
    assert_eq!(batch.entries, [(Revocation::Subject(subject(1), 2), NOW)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_stores_open_one_new_file_at_once() {
    // Many rounds, since those who come at the wrong moment are few.
    for _ in 0..40 {
        let scratch = Scratch::new();
        let start = Arc::new(Barrier::new(10));
        let mut tasks = JoinSet::new();
        for _ in 0..10 {
            let (path, start) = (scratch.file("sessions.db"), Arc::clone(&start));
            tasks.spawn(async move {
                start.wait().await;
                open(&path).await.unwrap()
            });
        }
        let stores = tasks.join_all().await;
        stores[0].create(session(id(1), row(NOW))).await.unwrap();
        for store in stores {
            assert!(store.load(&id(1)).await.unwrap().is_some());
        }
    }
}

/// Asserts that the file is refused with its path and what to do about it.
async fn assert_refused(path: &Path, remedy: &str) {
    let refused = open(path).await.unwrap_err();
    let (fault, advice) = refused.rsplit_once(": ").unwrap();
    assert!(fault.contains(path.to_str().unwrap()), "{refused}");
    assert!(advice.starts_with(remedy), "{refused}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let scratch = Scratch::new();
    let text = "user,basket\n".repeat(1000);
    fs::write(scratch.file("sessions.db"), &text).unwrap();
    assert_refused(&scratch.file("sessions.db"), "check that").await;
    assert_eq!(fs::read_to_string(scratch.file("sessions.db")).unwrap(), text, "and is left as it is");
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_refused() {
    let scratch = Scratch::new();
    assert_refused(&scratch.file("sessions.db").join("sessions.db"), "check that").await;
    assert_refused(&scratch.file("sessions.db").with_file_name("none").join("sessions.db"), "check that")
        .await;
}

#[tokio::test]
async fn a_file_of_a_later_version_is_refused() {
    let scratch = Scratch::new();
    fs::write(scratch.file("sessions.db"), empty_database(2, *b"Prtl")).unwrap();
    assert_refused(&scratch.file("sessions.db"), "use that version").await;
    // The same file without a version, and nobody's, is taken.
    fs::write(scratch.file("sessions.db"), empty_database(0, [0; 4])).unwrap();
    open(&scratch.file("sessions.db")).await.unwrap();
}

#[tokio::test]
async fn a_database_of_another_program_is_refused() {
    for (user_version, application) in [(1, [0; 4]), (1, *b"Othr"), (0, *b"Othr")] {
        let scratch = Scratch::new();
        fs::write(scratch.file("sessions.db"), empty_database(user_version, application)).unwrap();
        assert_refused(&scratch.file("sessions.db"), "give sessions a file of their own").await;
    }
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    for name in ["", ":memory:", "file:sessions.db?mode=memory"] {
        let error = SqliteStore::open(name).await.unwrap_err().to_string();
        assert!(error.contains("is no file") && error.contains("MemoryStore"), "{error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_its_owner_s_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let scratch = Scratch::new();
    let store = open(&scratch.file("sessions.db")).await.unwrap();
    store.create(session(id(1), row(store.ping().await.unwrap()))).await.unwrap();
    for file in fs::read_dir(scratch.file("sessions.db").parent().unwrap()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o077, 0, "{:?}", file.path());
    }
}

/// A database of one empty page, as SQLite writes it, with this `user_version` and `application_id`
/// (<https://www.sqlite.org/fileformat2.html>, 1.3 and 1.6).
fn empty_database(user_version: u32, application: [u8; 4]) -> [u8; 512] {
    let mut page = [0; 512];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    // Page size, versions of the format, space reserved, and three fixed fractions.
    page[16..24].copy_from_slice(&[2, 0, 1, 1, 0, 64, 32, 32]);
    page[60..64].copy_from_slice(&user_version.to_be_bytes());
    page[68..72].copy_from_slice(&application);
    // A leaf of a table without cells, whose (empty) cell area begins at the end of the page.
    page[100..108].copy_from_slice(&[13, 0, 0, 0, 0, 2, 0, 0]);
    page
}
