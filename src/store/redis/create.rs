//! A new session, in an order that leaves nothing alive that should be dead, whoever dies in between: it is entered into its
//! user's index, written, and the epoch read again; then what it replaces is taken from. Nobody knows its id until then.

use super::{
    super::{
        contract::{CreateError, NewSession, Replacement, StoreError},
        optimistic::{MOST_TRIES, Records as _, contended},
        revocation::Revocation,
        row::Row,
        steps::{is_as_seen, may_move, supersede_row},
    },
    Shared,
};

impl Shared {
    /// Creates a session and replaces another.
    pub(super) async fn create(&self, new: &NewSession<'_>) -> Result<Row, CreateError> {
        self.write_index().await?;
        let row = self.write_new(new).await?;
        if let Err(error) = self.replace(new).await {
            // Nobody knows the new id; if this fails too, it is gone when its time is over.
            let _ = self.drop_one(&new.id, u64::MAX).await;
            if let Some(subject) = &row.subject {
                let _ = self.forget(subject, &[new.id]).await;
            }
            return Err(error);
        }
        Ok(row)
    }

    /// Takes from the session that a new one replaces. What it was read to hold must still be there.
    async fn replace(&self, new: &NewSession<'_>) -> Result<(), CreateError> {
        for _ in 0..MOST_TRIES {
            let (old, supersedes) = match new.replaces {
                None => return Ok(()),
                Some(Replacement::End(old)) => {
                    self.end(&old).await?;
                    return Ok(());
                }
                Some(Replacement::Move(old)) => (old, false),
                Some(Replacement::Supersede(old)) => (old, true),
            };
            let read = self.read(&old, true).await?.ok_or(CreateError::ReplacedGone)?;
            if self.is_outlived(&read.row).await? {
                return Err(CreateError::ReplacedGone);
            }
            let is_ours = read.row.superseded_at.is_some() && read.row.successor == Some(new.id);
            if !is_ours {
                let superseded = supersede_row(&old, &read.row, new.id, read.now, new.keeper);
                let after = superseded.filter(|_| may_move(&old, &read.row, new.keeper));
                let after = after.ok_or(CreateError::ReplacedGone)?;
                if !is_as_seen(new.seen.as_ref(), &read.row, &read.fields) {
                    return Err(CreateError::ReplacedChanged);
                }
                let versions = Some((&read.versions, new.seen.is_some()));
                let news = [Revocation::Superseded(old)];
                let news: &[Revocation] = if supersedes { &news } else { &[] };
                if !self.write(&old, versions, &after, std::iter::empty(), news).await? {
                    continue;
                }
            }
            // A session that moves is superseded first, so that a step which is done twice knows itself again.
            if !supersedes {
                self.end(&old).await?;
            }
            return Ok(());
        }
        Err(contended().into())
    }

    /// Writes a new session in the epoch that holds when it is written.
    async fn write_new(&self, new: &NewSession<'_>) -> Result<Row, CreateError> {
        let predecessor = match new.replaces {
            Some(Replacement::Supersede(old)) => Some(old),
            _ => None,
        };
        for _ in 0..MOST_TRIES {
            let mut row = Row { predecessor, successor: None, epoch: 0, ..new.row.clone() };
            if let Some(subject) = &row.subject {
                row.epoch = self.enter(subject, &new.id, row.ends_at).await?;
            }
            new.keeper.sign(&new.id, &mut row);
            let fields = new.fields.iter().map(|(tag, value)| (tag, Some(value)));
            if !self.write(&new.id, None, &row, fields, &[]).await? {
                return Err(CreateError::Taken);
            }
            if !self.is_outlived(&row).await? {
                return Ok(row);
            }
            // The user was signed out everywhere while it was being written. Nobody knows it yet.
            self.drop_one(&new.id, u64::MAX).await?;
        }
        Err(StoreError::new("the user is being signed out everywhere again and again").into())
    }
}
