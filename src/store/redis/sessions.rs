//! One session at a time: read, written if nobody wrote it since, ended.

use std::{collections::HashMap, sync::atomic::Ordering};

use async_trait::async_trait;
use redis::RedisResult;

use super::{
    super::{
        contract::StoreError,
        optimistic::{Found, Records},
        revocation::Revocation,
        row::{FieldTag, Row},
        row_bytes,
        steps::{MOST_PREDECESSORS, is_live},
    },
    Shared, feed,
    keys::partition,
    scripts::{Call, Millis},
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

/// How often a session was written: its row, and anything of it.
#[derive(Debug, Clone)]
pub(super) struct Versions {
    row: String,
    any: String,
}

/// What lies under a session's id.
pub(super) struct Read {
    pub(super) row: Row,
    pub(super) fields: Vec<(FieldTag, Vec<u8>)>,
    pub(super) versions: Versions,
    pub(super) now: Timestamp,
}

impl Shared {
    /// The session, if it is live as far as its own row says.
    pub(super) async fn read(&self, id: &StoredId, with_fields: bool) -> Result<Option<Read>, StoreError> {
        let at = partition(id.as_bytes());
        let keys = [self.keys.session(id), self.keys.meta(at)];
        let call = self.call(&self.scripts.read, at, keys).arg(u8::from(with_fields));
        let (Millis(now), Millis(before), found): (Millis, Millis, HashMap<Vec<u8>, Vec<u8>>) =
            call.run(&self.link).await.map_err(StoreError::new)?;
        let Some(bytes) = found.get(b"row".as_slice()) else { return Ok(None) };
        // What cannot be read is kept, so that its reader finds that it is not as it was signed.
        let row = row_bytes::decode(bytes).unwrap_or_else(row_bytes::damaged);
        let count = |name: &[u8]| {
            found.get(name).map(|count| String::from_utf8_lossy(count).into_owned()).unwrap_or_default()
        };
        let versions = Versions { row: count(b"r"), any: count(b"v") };
        if !is_live(&row, 0, now) || row.authenticated_at < before {
            return Ok(None);
        }
        let field = |(name, value): (&Vec<u8>, &Vec<u8>)| match name.split_first() {
            Some((b'f', tag)) => Some((FieldTag::from_bytes(tag.try_into().ok()?), value.clone())),
            _ => None,
        };
        Ok(Some(Read { row, fields: found.iter().filter_map(field).collect(), versions, now }))
    }

    /// Writes a session whole, if it is as `versions` say; none: if there is no live one.
    pub(super) async fn write(
        &self,
        id: &StoredId,
        versions: Option<(&Versions, bool)>,
        row: &Row,
        fields: impl Iterator<Item = (&FieldTag, Option<&Vec<u8>>)>,
        news: &[Revocation],
    ) -> Result<bool, StoreError> {
        let at = partition(id.as_bytes());
        let (row_version, any_version) = match versions {
            Some((versions, true)) => (versions.row.as_str(), versions.any.as_str()),
            Some((versions, false)) => (versions.row.as_str(), ""),
            None => ("", ""),
        };
        let mut call = self
            .call(&self.scripts.write, at, [self.keys.session(id), self.keys.feed(at)])
            .arg(self.place(at))
            .arg(row_version)
            .arg(any_version)
            .arg(row_bytes::encode(row))
            .arg(row.deadline.min(row.ends_at).as_millis())
            .arg(u8::from(row.superseded_at.is_some()))
            .arg(row.predecessor.as_ref().map(StoredId::as_bytes).map_or(&[] as &[u8], |id| id.as_slice()))
            .arg(KEPT_BEYOND)
            .arg(news.len())
            .arg(row.epoch)
            .arg(format!("{}{}", self.writer, self.writes.fetch_add(1, Ordering::Relaxed)));
        for revocation in news {
            call = feed::entry(call, revocation);
        }
        for (tag, value) in fields {
            call = field(call, tag, value);
        }
        let written: u8 = self.publishing(at, !news.is_empty(), &call).await?;
        Ok(written == 1)
    }

    /// Writes fields alone. The row, if the session took them.
    pub(super) async fn put(
        &self,
        id: &StoredId,
        fields: &[(FieldTag, Option<Vec<u8>>)],
    ) -> Result<Option<(Row, Timestamp)>, StoreError> {
        let at = partition(id.as_bytes());
        let mut call = self.call(&self.scripts.put, at, [self.keys.session(id), self.keys.meta(at)]);
        for (tag, value) in fields {
            call = field(call, tag, value.as_ref());
        }
        let put: redis::Value = call.run(&self.link).await.map_err(StoreError::new)?;
        let (Millis(now), Millis(before), row): (Millis, Millis, Vec<u8>) =
            match redis::from_redis_value::<Vec<redis::Value>>(put) {
                Ok(parts) if parts.len() == 3 => {
                    redis::from_redis_value(redis::Value::Array(parts)).map_err(StoreError::new)?
                }
                Ok(_) => return Ok(None),
                Err(error) => return Err(StoreError::new(error)),
            };
        let row = row_bytes::decode(&row).filter(|row| row.authenticated_at >= before);
        Ok(row.map(|row| (row, now)))
    }

    /// Ends a session and those whose newer id it is, the oldest first: whoever is cut off in the middle has not ended the
    /// one that was asked for. Whether that was live.
    pub(super) async fn end(&self, id: &StoredId) -> Result<bool, StoreError> {
        let mut chain = vec![*id];
        while let Some(last) = chain.last() {
            let (kind, row) = self.run_end(last, chain.len() > MOST_PREDECESSORS).await?;
            match row.as_ref().and_then(|row| row.predecessor).filter(|_| kind == HAS_PREDECESSOR) {
                Some(older) => chain.push(older),
                None => {
                    self.leave_index(last, row.as_ref()).await;
                    let mut was_live = kind == 1;
                    // The oldest has ended; those after it follow, the one that was asked for last.
                    for id in chain.iter().rev().skip(1) {
                        was_live = self.end_forced(id).await?;
                    }
                    return Ok(was_live);
                }
            }
        }
        Ok(false)
    }

    async fn end_forced(&self, id: &StoredId) -> Result<bool, StoreError> {
        let (kind, row) = self.run_end(id, true).await?;
        self.leave_index(id, row.as_ref()).await;
        Ok(kind == 1)
    }

    async fn run_end(&self, id: &StoredId, force: bool) -> Result<(i64, Option<Row>), StoreError> {
        let at = partition(id.as_bytes());
        let call = self
            .call(&self.scripts.end, at, [self.keys.session(id), self.keys.feed(at)])
            .arg(self.place(at))
            .arg(id.as_bytes().as_slice())
            .arg(u8::from(force));
        let ended: Vec<redis::Value> = self.publishing(at, true, &call).await?;
        let mut ended = ended.into_iter();
        let kind = ended.next().map(redis::from_redis_value::<i64>).transpose().map_err(StoreError::new)?;
        let row: Option<Vec<u8>> =
            ended.next().map(redis::from_redis_value).transpose().map_err(StoreError::new)?.flatten();
        Ok((kind.unwrap_or(-1), row.as_deref().and_then(row_bytes::decode)))
    }

    /// Takes a session that has ended out of its user's index. The index is only a pointer, so a failure does no harm.
    async fn leave_index(&self, id: &StoredId, row: Option<&Row>) {
        if let Some(subject) = row.and_then(|row| row.subject) {
            let _ = self.forget(&subject, &[*id]).await;
        }
    }

    /// Takes sessions out of a user's index.
    pub(super) async fn forget(&self, subject: &SubjectKey, ids: &[StoredId]) -> RedisResult<()> {
        let mut command = redis::cmd("ZREM");
        command.arg(self.keys.index(subject));
        for id in ids {
            command.arg(id.as_bytes().as_slice());
        }
        self.link.send(partition(subject.as_bytes()), &command).await.map(drop)
    }

    /// The present epoch of a user.
    pub(super) async fn epoch(&self, subject: &SubjectKey) -> Result<u64, StoreError> {
        let mut command = redis::cmd("GET");
        command.arg(self.keys.epoch(subject));
        let epoch = self.link.send(partition(subject.as_bytes()), &command).await.map_err(StoreError::new)?;
        let epoch: Option<u64> = redis::from_redis_value(epoch).map_err(StoreError::new)?;
        Ok(epoch.unwrap_or(0))
    }
}

#[async_trait]
impl Records for Shared {
    type Version = Versions;

    async fn find(&self, id: &StoredId) -> Result<Option<Found<Versions>>, StoreError> {
        let read = self.read(id, false).await?;
        Ok(read.map(|read| Found { row: read.row, version: read.versions, now: read.now }))
    }

    async fn swap(
        &self,
        id: &StoredId,
        found: &Found<Versions>,
        row: &Row,
        fields: &[(FieldTag, Option<Vec<u8>>)],
        news: &[Revocation],
    ) -> Result<bool, StoreError> {
        let fields = fields.iter().map(|(tag, value)| (tag, value.as_ref()));
        self.write(id, Some((&found.version, false)), row, fields, news).await
    }

    async fn end(&self, id: &StoredId) -> Result<(), StoreError> {
        Self::end(self, id).await.map(drop)
    }

    async fn publish(&self, of: &StoredId, revocation: Revocation) -> Result<(), StoreError> {
        self.publish_one(partition(of.as_bytes()), &revocation).await
    }

    async fn is_outlived(&self, row: &Row) -> Result<bool, StoreError> {
        match &row.subject {
            Some(subject) => Ok(row.epoch < self.epoch(subject).await?),
            None => Ok(false),
        }
    }
}

fn field<'a>(call: Call<'a>, tag: &FieldTag, value: Option<&Vec<u8>>) -> Call<'a> {
    let call = call.arg(tag.as_bytes().as_slice());
    match value {
        Some(value) => call.arg("1").arg(value.as_slice()),
        None => call.arg("0").arg(""),
    }
}

/// What the script says of a session whose predecessor must end before it.
const HAS_PREDECESSOR: i64 = -2;

/// Milliseconds that a session is kept beyond its end. Redis removes it then by itself.
const KEPT_BEYOND: u64 = 60_000;
