//! Events as `tracing` records, the default.

use super::{
    EventSink,
    event::{SessionEvent, Severity},
};

/// Writes each event to `tracing`, target `portcullis`, with the fields `event`, `session` and `detail`.
///
/// Ordinary life is `INFO`, what is worth a look `WARN`, an alarm `ERROR`.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TracingSink;

impl EventSink for TracingSink {
    fn record(&self, event: &SessionEvent) {
        let name = event.name();
        let session = event.session().map(|session| session.to_string()).unwrap_or_default();
        let detail = event.detail();
        match event.severity() {
            Severity::Info => tracing::info!(target: "portcullis", event = name, session, detail),
            Severity::Warning => tracing::warn!(target: "portcullis", event = name, session, detail),
            Severity::Alarm => tracing::error!(target: "portcullis", event = name, session, detail),
        }
    }
}
