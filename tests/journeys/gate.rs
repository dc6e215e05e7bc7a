//! A handler that stops in the middle until it is let go.

use std::sync::Arc;

use tokio::sync::Notify;

#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Notify, Notify)>);

impl Gate {
    pub(crate) async fn wait_inside(&self) {
        self.0.0.notify_one();
        self.0.1.notified().await;
    }

    pub(crate) async fn is_reached(&self) {
        self.0.0.notified().await;
    }

    pub(crate) fn open(&self) {
        self.0.1.notify_one();
    }
}
