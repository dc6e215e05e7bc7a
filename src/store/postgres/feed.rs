//! The feed: a table, and notifications that say when to look.
//!
//! A mark is what a reader has seen, as PostgreSQL itself puts it (a snapshot): a number or a time would miss an entry whose
//! transaction began before and committed after.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::postgres::PgListener;
use tokio::sync::Notify;

use super::{
    super::{
        contract::StoreError,
        feed::{FeedBatch, FeedMark, FeedPosition},
        revocation::Revocation,
    },
    Shared, instant, signed, sql, unsigned,
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

/// What wakes readers.
#[derive(Default)]
pub(super) struct News {
    pub(super) woken: Notify,
    /// Whether notifications arrive at all: behind a transaction pooler they do not.
    pub(super) heard: AtomicBool,
}

type Line = (String, Option<i64>, Option<i16>, Option<Vec<u8>>, Option<i64>);

impl Shared {
    pub(super) async fn window(&self, window: Duration) -> Result<FeedBatch, StoreError> {
        let window = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
        let clock = self.clock();
        let lines: Vec<Line> =
            self.pool
                .run(|pool| async move {
                    sqlx::query_as(sql::WINDOW).bind(window).bind(clock).fetch_all(&pool).await
                })
                .await?;
        Ok(self.batch(lines))
    }

    pub(super) async fn after(&self, mark: &FeedMark) -> Result<FeedBatch, StoreError> {
        let seen = String::from_utf8_lossy(mark.as_bytes()).into_owned();
        loop {
            let woken = self.news.woken.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let lines: Vec<Line> = self
                .pool
                .run(|pool| {
                    let seen = seen.clone();
                    async move { sqlx::query_as(sql::AFTER).bind(seen).fetch_all(&pool).await }
                })
                .await?;
            if lines.iter().any(|(_, at, ..)| at.is_some()) {
                return Ok(self.batch(lines));
            }
            let look = if self.news.heard.load(Ordering::Relaxed) { LOOK } else { LOOK_UNHEARD };
            let _ = tokio::time::timeout(look, woken).await;
        }
    }

    fn batch(&self, lines: Vec<Line>) -> FeedBatch {
        let seen = lines.first().map(|(seen, ..)| seen.clone()).unwrap_or_default();
        let entry = |(_, at, kind, of, value): Line| {
            let (of, value) = (of?, unsigned(value?));
            let revocation = match kind? {
                1 => Revocation::Session(StoredId::from_bytes(of.try_into().ok()?)),
                2 => Revocation::Claims(StoredId::from_bytes(of.try_into().ok()?), value),
                3 => Revocation::Subject(SubjectKey::from_bytes(of.try_into().ok()?), value),
                5 => Revocation::Before(Timestamp::from_millis(value)),
                4 => Revocation::Superseded(StoredId::from_bytes(of.try_into().ok()?)),
                _ => return None,
            };
            Some((revocation, instant(at?)))
        };
        FeedBatch {
            entries: lines.into_iter().filter_map(entry).collect(),
            position: FeedPosition::After(FeedMark::new(seen.into_bytes())),
            complete_since: self.born,
        }
    }
}

/// Entries as the statements take them: kinds, what they are about, their numbers.
pub(super) fn entries(news: &[Revocation]) -> (Vec<i16>, Vec<Vec<u8>>, Vec<i64>) {
    let mut entries = (Vec::new(), Vec::new(), Vec::new());
    for revocation in news {
        let (kind, of, value) = match revocation {
            Revocation::Session(id) => (1, id.as_bytes().to_vec(), 0),
            Revocation::Claims(id, version) => (2, id.as_bytes().to_vec(), signed(*version)),
            Revocation::Subject(subject, epoch) => (3, subject.as_bytes().to_vec(), signed(*epoch)),
            Revocation::Superseded(id) => (4, id.as_bytes().to_vec(), 0),
            Revocation::Before(moment) => (5, Vec::new(), signed(moment.as_millis())),
        };
        entries.0.push(kind);
        entries.1.push(of);
        entries.2.push(value);
    }
    entries
}

/// Listens as long as the store is there, and finds out whether notifications arrive.
pub(super) async fn listen(store: Weak<Shared>) {
    loop {
        let Some(strong) = store.upgrade() else { return };
        let (pool, channel, news) =
            (Arc::clone(&strong.pool), strong.channel.clone(), Arc::clone(&strong.news));
        drop(strong);
        // A connection of its own: it is held as long as it lives.
        if let Ok(mut listener) = PgListener::connect_with(&pool.get()).await {
            listener.eager_reconnect(false);
            if listener.listen(&channel).await.is_ok() {
                // What came meanwhile is looked for at once, and the question whether anything arrives is asked.
                news.woken.notify_waiters();
                let asked = sqlx::query("SELECT pg_notify($1, '')").bind(&channel).execute(&pool.get()).await;
                let mut asked = asked.is_ok();
                loop {
                    let patience = if asked { ECHO } else { ALIVE };
                    match tokio::time::timeout(patience, listener.try_recv()).await {
                        Ok(Ok(Some(_))) => {
                            news.heard.store(true, Ordering::Relaxed);
                            asked = false;
                            news.woken.notify_waiters();
                        }
                        Ok(Ok(None) | Err(_)) => break,
                        Err(_) if asked => {
                            if news.heard.swap(false, Ordering::Relaxed) {
                                break;
                            }
                            asked = false;
                        }
                        // Nothing for a while: whether the line is dead is seen by asking again.
                        Err(_) => {
                            if store.strong_count() == 0 {
                                return;
                            }
                            let again = sqlx::query("SELECT pg_notify($1, '')").bind(&channel);
                            asked = again.execute(&pool.get()).await.is_ok();
                        }
                    }
                }
            }
        }
        news.heard.store(false, Ordering::Relaxed);
        tokio::time::sleep(RETRY).await;
    }
}

/// How often the table is looked at although nothing was heard.
const LOOK: Duration = Duration::from_secs(1);

/// The same where notifications do not arrive.
const LOOK_UNHEARD: Duration = Duration::from_millis(100);

/// How soon a notification of our own must be back.
const ECHO: Duration = Duration::from_secs(1);

/// How long nothing may be heard before a notification of our own is sent.
const ALIVE: Duration = Duration::from_secs(5);

const RETRY: Duration = Duration::from_millis(200);
