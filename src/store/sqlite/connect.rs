//! Connecting to a file that others may have locked.

use std::time::Duration;

use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

/// Connects; tries again for a while where another process has the file locked. SQLite itself does not wait when the
/// journal mode of a new file is changed.
pub(super) async fn connect(
    pool: SqlitePoolOptions,
    options: &SqliteConnectOptions,
) -> sqlx::Result<SqlitePool> {
    let mut tries = 0;
    loop {
        match pool.clone().connect_with(options.clone()).await {
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some(BUSY) && tries < MOST_TRIES =>
            {
                tries += 1;
                tokio::time::sleep(BUSY_TIMEOUT / MOST_TRIES).await;
            }
            done => return done,
        }
    }
}

/// How long a step waits for other writers before it fails.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// SQLite's code for a file that another connection has locked.
const BUSY: &str = "5";
const MOST_TRIES: u32 = 100;
