//! Tests that a store could change run on every store.

/// Makes of each story two tests: one over a store in memory, one over a file.
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
    };
}
pub(crate) use on_every_store;
