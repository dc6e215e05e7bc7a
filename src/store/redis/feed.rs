//! The feed: one stream for each partition, and a channel that says where something new is.
//!
//! The streams are the truth. A message of the channel only saves the wait until the next look, which comes every second,
//! so that a connection which has died without a word delays what is to be heard by that much and loses nothing.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redis::{FromRedisValue as _, Value};
use tokio::{sync::Notify, task::JoinSet};

use super::{
    super::{
        contract::StoreError,
        feed::{FeedBatch, FeedMark, FeedPosition},
        revocation::Revocation,
    },
    Shared,
    keys::PARTITIONS,
    link::Heard,
    scripts::{Call, Millis},
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

/// The id of a stream's entry: milliseconds, and a number within them.
type EntryId = (u64, u64);

/// What was heard of the streams: the newest entry of each.
#[derive(Default)]
pub(super) struct News {
    newest: Mutex<Vec<EntryId>>,
    pub(super) woken: Notify,
}

impl News {
    pub(super) fn hear(&self, heard: Heard) {
        if let Heard::Message(text) = heard {
            let text = String::from_utf8_lossy(&text);
            let heard = text
                .split_once(' ')
                .and_then(|(partition, id)| Some((partition.parse::<usize>().ok()?, parse_id(id)?)));
            if let Some((partition, id)) = heard.filter(|(partition, _)| *partition < usize::from(PARTITIONS))
            {
                let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
                newest.resize(usize::from(PARTITIONS), (0, 0));
                if let Some(known) = newest.get_mut(partition) {
                    *known = (*known).max(id);
                }
            }
        }
        self.woken.notify_waiters();
    }

    /// What was heard of a partition.
    fn newest(&self, partition: u8) -> EntryId {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.get(usize::from(partition)).copied().unwrap_or_default()
    }

    /// A partition was read up to `place`, and what was heard of is not there: it was purged, or lost with a primary. It is
    /// not looked for again.
    fn forget(&self, partition: u8, heard: EntryId, place: EntryId) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = newest.get_mut(usize::from(partition)).filter(|known| **known == heard) {
            *known = place;
        }
    }

    /// The partitions that have something after these places, as far as was heard.
    fn beyond(&self, places: &[EntryId]) -> Vec<u8> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = |(partition, place): (u8, &EntryId)| {
            newest.get(usize::from(partition)).is_some_and(|newest| newest > place).then_some(partition)
        };
        (0..PARTITIONS).zip(places).filter_map(is_news).collect()
    }
}

/// One entry as it lies in a stream.
struct Entry {
    revocation: Revocation,
    at: Timestamp,
    /// Microseconds of the server that made it: they put entries of several streams in order.
    made: u64,
}

impl Shared {
    /// Reads every stream whole, and how old the partitions are.
    pub(super) async fn window(self: &Arc<Self>, window: Duration) -> Result<FeedBatch, StoreError> {
        self.look_for_replicas().await;
        let mut all = JoinSet::new();
        for partition in 0..PARTITIONS {
            let shared = Arc::clone(self);
            all.spawn(async move {
                let keys = [shared.keys.meta(partition), shared.keys.feed(partition)];
                let call = shared.call(&shared.scripts.window, partition, keys);
                let found: (Millis, Millis, Value) = call.run(&shared.link).await.map_err(StoreError::new)?;
                Ok::<_, StoreError>((partition, found))
            });
        }
        let mut places = vec![(0, 0); usize::from(PARTITIONS)];
        let mut entries = Vec::new();
        let mut complete_since = Timestamp::default();
        while let Some(read) = all.join_next().await {
            let (partition, (Millis(now), Millis(born), stream)) = read.map_err(StoreError::new)??;
            complete_since = complete_since.max(born);
            let (read, last) = parse(stream)?;
            advance(&mut places, partition, last);
            entries.extend(read.into_iter().filter(|entry| entry.at + window >= now));
        }
        Ok(batch(entries, &places, complete_since))
    }

    /// Waits until there is something after these places.
    pub(super) async fn after(self: &Arc<Self>, mark: &FeedMark) -> Result<FeedBatch, StoreError> {
        let mut places = places_of(mark);
        loop {
            let woken = self.news.woken.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let mut due = self.news.beyond(&places);
            if due.is_empty() {
                let timed_out = tokio::time::timeout(LOOK, woken).await.is_err();
                due = self.news.beyond(&places);
                if due.is_empty() && timed_out {
                    due = (0..PARTITIONS).collect();
                }
            }
            let entries = self.tails(&mut places, due).await?;
            if !entries.is_empty() {
                // Births matter to a whole window only.
                return Ok(batch(entries, &places, Timestamp::MAX));
            }
        }
    }

    /// What the streams of these partitions have after the places, which move on.
    async fn tails(self: &Arc<Self>, places: &mut [EntryId], due: Vec<u8>) -> Result<Vec<Entry>, StoreError> {
        let mut all = JoinSet::new();
        for partition in due {
            let shared = Arc::clone(self);
            let (millis, number) = places.get(usize::from(partition)).copied().unwrap_or_default();
            let heard = self.news.newest(partition);
            all.spawn(async move {
                let mut command = redis::cmd("XRANGE");
                command.arg(shared.keys.feed(partition)).arg(format!("({millis}-{number}")).arg("+");
                let stream = shared.link.send(partition, &command).await.map_err(StoreError::new)?;
                Ok::<_, StoreError>((partition, heard, stream))
            });
        }
        let mut entries = Vec::new();
        while let Some(read) = all.join_next().await {
            let (partition, heard, stream) = read.map_err(StoreError::new)??;
            let (read, last) = parse(stream)?;
            advance(places, partition, last);
            if last.is_none() {
                let place = places.get(usize::from(partition)).copied().unwrap_or_default();
                self.news.forget(partition, heard, place);
            }
            entries.extend(read);
        }
        Ok(entries)
    }
}

fn batch(mut entries: Vec<Entry>, places: &[EntryId], complete_since: Timestamp) -> FeedBatch {
    entries.sort_by_key(|entry| entry.made);
    let bytes: Vec<u8> =
        places.iter().flat_map(|(millis, number)| [*millis, *number]).flat_map(u64::to_be_bytes).collect();
    FeedBatch {
        entries: entries.into_iter().map(|entry| (entry.revocation, entry.at)).collect(),
        position: FeedPosition::After(FeedMark::new(bytes)),
        complete_since,
    }
}

fn places_of(mark: &FeedMark) -> Vec<EntryId> {
    let mut numbers =
        mark.as_bytes().chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes));
    (0..PARTITIONS).map(|_| (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))).collect()
}

fn advance(places: &mut [EntryId], partition: u8, last: Option<EntryId>) {
    if let (Some(place), Some(last)) = (places.get_mut(usize::from(partition)), last) {
        *place = (*place).max(last);
    }
}

/// The entries of a stream that this version understands, and the place of the last one.
fn parse(stream: Value) -> Result<(Vec<Entry>, Option<EntryId>), StoreError> {
    let found: Vec<(String, Vec<Vec<u8>>)> = Vec::from_redis_value(stream).map_err(StoreError::new)?;
    let last = found.last().and_then(|(id, _)| parse_id(id));
    let entry = |(_, fields): &(String, Vec<Vec<u8>>)| {
        let value = |name: &[u8]| {
            fields.chunks_exact(2).find_map(|pair| match pair {
                [key, value] if key == name => Some(value.as_slice()),
                _ => None,
            })
        };
        let number = |name| std::str::from_utf8(value(name)?).ok()?.parse::<u64>().ok();
        let (of, version) = (value(b"o")?, number(b"v")?);
        let revocation = match value(b"k")? {
            b"1" => Revocation::Session(StoredId::from_bytes(of.try_into().ok()?)),
            b"2" => Revocation::Claims(StoredId::from_bytes(of.try_into().ok()?), version),
            b"3" => Revocation::Subject(SubjectKey::from_bytes(of.try_into().ok()?), version),
            b"5" => Revocation::Before(Timestamp::from_millis(version)),
            b"4" => Revocation::Superseded(StoredId::from_bytes(of.try_into().ok()?)),
            _ => return None,
        };
        Some(Entry { revocation, at: Timestamp::from_millis(number(b"a")?), made: number(b"m")? })
    };
    Ok((found.iter().filter_map(entry).collect(), last))
}

/// Adds an entry to a call: its kind, what it is about, its number.
pub(super) fn entry<'a>(call: Call<'a>, revocation: &Revocation) -> Call<'a> {
    match revocation {
        Revocation::Session(id) => call.arg("1").arg(id.as_bytes().as_slice()).arg(0),
        Revocation::Claims(id, version) => call.arg("2").arg(id.as_bytes().as_slice()).arg(*version),
        Revocation::Subject(subject, epoch) => call.arg("3").arg(subject.as_bytes().as_slice()).arg(*epoch),
        Revocation::Superseded(id) => call.arg("4").arg(id.as_bytes().as_slice()).arg(0),
        Revocation::Before(moment) => call.arg("5").arg("").arg(moment.as_millis()),
    }
}

fn parse_id(id: &str) -> Option<EntryId> {
    let (millis, number) = id.split_once('-')?;
    Some((millis.parse().ok()?, number.parse().ok()?))
}

/// How often all streams are looked at, whatever was heard: 64 small commands a second from each instance.
const LOOK: Duration = Duration::from_secs(1);
