//! Connections that come back.
//!
//! A pool can be full of connections that died without a word (the server was restarted, a cable was pulled). Then every
//! one of them would fail one request, or hang until the system gives it up after minutes. So a step whose connection turns
//! out to be dead is done once more on another, and a pool that does not answer is replaced by a new one.

use std::{
    sync::{Arc, PoisonError, RwLock, Weak},
    time::Duration,
};

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::super::contract::StoreError;

/// A pool, and how to make another.
pub(super) struct Pool {
    options: PgConnectOptions,
    connections: u32,
    current: RwLock<PgPool>,
}

impl Pool {
    /// Connects once, and from then on looks every second whether the server answers, as long as the pool is there.
    pub(super) async fn open(options: PgConnectOptions, connections: u32) -> sqlx::Result<Arc<Self>> {
        let current = pool_options(connections).connect_with(options.clone()).await?;
        let pool = Arc::new(Self { options, connections, current: RwLock::new(current) });
        tokio::spawn(keep(Arc::downgrade(&pool)));
        Ok(pool)
    }

    /// The connections to use at this moment.
    pub(super) fn get(&self) -> PgPool {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Does a step, and does it again where its connection was dead: everything a store does may be done twice.
    pub(super) async fn run<T, F>(&self, mut step: impl FnMut(PgPool) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        let mut tries = 0;
        loop {
            match step(self.get()).await {
                Err(error) if is_worth_another_try(&error) && tries <= self.connections => tries += 1,
                done => return done.map_err(StoreError::new),
            }
        }
    }

    async fn answers(&self) -> bool {
        let pool = self.get();
        // A server that was the primary once answers too.
        let asked = sqlx::query_as("SELECT NOT pg_is_in_recovery()").fetch_one(&pool);
        matches!(tokio::time::timeout(PATIENCE, asked).await, Ok(Ok((true,))))
    }

    /// Puts new connections in the place of those that do not answer.
    async fn replace(&self) {
        let connecting = pool_options(self.connections).connect_with(self.options.clone());
        if let Ok(Ok(new)) = tokio::time::timeout(PATIENCE, connecting).await {
            let old =
                std::mem::replace(&mut *self.current.write().unwrap_or_else(PoisonError::into_inner), new);
            // Closing waits for those that are in use, which may be long.
            tokio::spawn(async move { tokio::time::timeout(Duration::from_secs(60), old.close()).await });
        }
    }
}

fn pool_options(connections: u32) -> PgPoolOptions {
    // Asking each connection before its use would double the round trips.
    let options = PgPoolOptions::new().max_connections(connections).acquire_timeout(PATIENCE);
    options.test_before_acquire(false).after_connect(|connection, _| {
        Box::pin(async move {
            // An instance that stops in the middle of a step must not hold up the others for longer than this.
            sqlx::raw_sql("SET lock_timeout = '1s'; SET idle_in_transaction_session_timeout = '2s'")
                .execute(connection)
                .await
                .map(drop)
        })
    })
}

/// Whether the connection was at fault, or two steps stood in each other's way.
fn is_worth_another_try(error: &sqlx::Error) -> bool {
    match error {
        // A pool is closed when another has taken its place.
        sqlx::Error::Io(_) | sqlx::Error::PoolClosed => true,
        // 40001, 40P01: two steps crossed. 57P01 to 57P03: the server goes down, or comes up. 08…: the connection.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            matches!(code.as_ref(), "40001" | "40P01" | "57P01" | "57P02") || code.starts_with("08")
        }),
        _ => false,
    }
}

async fn keep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let Some(pool) = pool.upgrade() else { return };
        // The first that is dead costs nothing but this question.
        if !pool.answers().await && !pool.answers().await {
            pool.replace().await;
        }
    }
}

const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long a connection may take, or an answer to the simplest question. A verb's own limit is far shorter.
const PATIENCE: Duration = Duration::from_secs(2);
