//! Tests that a store could change run on every store.

/// Makes of each story four tests: over a store in memory, over a file, and over three instances that share a Redis and
/// two that share a PostgreSQL, behind a proxy. The last two are left out where `tests/servers` has started none.
macro_rules! on_every_store {
    ($($story:ident),* $(,)?) => {
        mod on_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(crate::lab::Lab::start(&crate::lab::Flags::memory())).await;
            })*
        }
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let scratch = crate::scratch::Scratch::new();
                let flags = crate::lab::Flags::sqlite(&scratch.file("sessions.db"));
                super::$story(crate::lab::Lab::start(&flags)).await;
            })*
        }
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let Some(flags) = crate::lab::Flags::redis() else { return };
                super::$story(crate::lab::Lab::start(&flags)).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let Some(flags) = crate::lab::Flags::postgres() else { return };
                super::$story(crate::lab::Lab::start(&flags)).await;
            })*
        }
    };
}
pub(crate) use on_every_store;
