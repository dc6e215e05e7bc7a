//! Tests that a store could change run on every store.

/// Makes of each story, with these flags of lab if there are any, four tests: over a store in memory, over a file, and over three instances that share a Redis and
/// two that share a PostgreSQL, behind a proxy. The last two are left out where `tests/servers` has started none.
macro_rules! on_every_store {
    ($($story:ident),* $(,)?) => { $crate::every_store::on_every_store!(with []: $($story),*); };
    (with $flags:tt: $($story:ident),* $(,)?) => {
        mod on_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let flags = crate::lab::Flags::memory().with(&$flags);
                super::$story(crate::lab::Lab::start(&flags)).await;
            })*
        }
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let scratch = crate::scratch::Scratch::new();
                let flags = crate::lab::Flags::sqlite(&scratch.file("sessions.db")).with(&$flags);
                super::$story(crate::lab::Lab::start(&flags)).await;
            })*
        }
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let Some(flags) = crate::lab::Flags::redis() else { return };
                super::$story(crate::lab::Lab::start(&flags.with(&$flags))).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let Some(flags) = crate::lab::Flags::postgres() else { return };
                super::$story(crate::lab::Lab::start(&flags.with(&$flags))).await;
            })*
        }
    };
}
pub(crate) use on_every_store;
