//! What is looked at before anything is served.

use std::{
    fmt,
    str::FromStr as _,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use sqlx::postgres::PgConnectOptions;

use super::{super::open_error::StoreOpenError, PostgresStore, Shared, feed, pool::Pool, schema, signed};
use crate::clock::Clock;

/// How a store in PostgreSQL is opened, where the URL does not say it all.
pub struct PostgresOptions {
    url: String,
    schema: Option<String>,
    connections: u32,
    clock: Option<Arc<dyn Clock>>,
}

impl PostgresOptions {
    /// The options of [`PostgresStore::open`].
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), schema: None, connections: 10, clock: None }
    }

    /// Keeps the tables in this schema, which is made if it is not there; otherwise they go where the role's `search_path`
    /// says. Letters, digits and underscores.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Opens up to this many connections (10: nine steps at once, of about a millisecond each, and the one that listens). For up
    /// to a minute after an outage the old ones may exist beside the new: plan `max_connections` for twice this, times the
    /// instances.
    #[must_use]
    pub const fn connections(mut self, connections: u32) -> Self {
        self.connections = connections;
        self
    }

    /// Takes another clock in place of the server's, for tests. Give the layer the same one.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open(self) -> Result<PostgresStore, StoreOpenError> {
        let Self { url, schema, connections, clock } = self;
        let is_name = |name: &String| {
            let mut bytes = name.bytes();
            name.len() <= 40
                && bytes.next().is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic())
                && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        };
        if let Some(schema) = schema.as_ref().filter(|schema| !is_name(schema)) {
            return Err(StoreOpenError::new(
                format!("`{schema}` is no name of a schema"),
                "use up to 40 letters, digits and underscores, beginning with no digit",
            ));
        }
        if connections < 2 {
            return Err(StoreOpenError::new(
                "the store may open fewer than two connections",
                "allow two: one listens",
            ));
        }
        let wrong = || {
            StoreOpenError::new(
                "this is no URL of a PostgreSQL",
                concat!(
                    "write postgres://USER:PASSWORD@HOST:PORT/DATABASE[?sslmode=verify-full], with reserved characters in the ",
                    "password percent-encoded; sslmode is disable, prefer, require, verify-ca or verify-full"
                ),
            )
        };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(wrong());
        }
        let mut options =
            PgConnectOptions::from_str(&url).map_err(|_| wrong())?.application_name("portcullis");
        if let Some(schema) = &schema {
            options = options.options([("search_path", schema)]);
        }
        let place = format!(
            "{}:{}/{}",
            options.get_host(),
            options.get_port(),
            options.get_database().unwrap_or_default()
        );
        let pool = Pool::open(options, connections).await.map_err(|error| schema::refused(&place, &error))?;
        let now = clock.as_ref().map(|clock| signed(clock.now().as_millis()));
        let (index, born) = schema::migrate(&pool.get(), &place, schema.as_deref(), now).await?;
        let shared = Arc::new(Shared {
            pool,
            channel: format!("portcullis_{}", schema.unwrap_or_default()),
            clock,
            born,
            news: Arc::default(),
            index_written: AtomicBool::new(index.is_some()),
            index: Mutex::new(index),
        });
        tokio::spawn(feed::listen(Arc::downgrade(&shared)));
        Ok(PostgresStore(shared))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions").field("schema", &self.schema).finish_non_exhaustive()
    }
}
