//! Nothing that is printed opens anything or names anybody (A58).

use std::sync::{Arc, Mutex};

use portcullis::{Auth, Identity, RequireRecentAuth, Session};

use crate::{
    handlers::{logout, page, read, reauthenticate, who, write},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, GRACE, Stage},
};

const SUBJECT: &str = "alice.liddell@example.com";
const VALUE: &str = "down-the-rabbit-hole";
const CLAIM: &str = "mad-hatter-guild";
/// Where every browser here asks from, and a word of what it calls itself.
const ADDRESS: &str = "192.0.2.1";
const BROWSER: &str = "Gecko/20100101";

/// Every secret that a browser's life has made so far, as text that must appear nowhere.
#[derive(Default)]
struct Secrets(Vec<String>);

impl Secrets {
    fn of(stage: &Stage) -> Self {
        let text = stage.keys.to_text();
        let keys = text.split_whitespace().filter(|word| word.len() == 43).map(str::to_owned);
        Self(keys.chain([SUBJECT, VALUE, CLAIM, ADDRESS, BROWSER].map(str::to_owned)).collect())
    }

    /// Adds a browser's cookies, in pieces: a log that holds any of them would shorten somebody's search.
    fn add(&mut self, browser: &crate::browser::Browser) {
        for name in [SESSION, RENEWAL] {
            let Some(value) = browser.jar.value(name) else { continue };
            // The first part of a token is its public header, the first bytes of a seal are version and key id.
            let secret = value.split_once('.').map_or(&value[8..], |(_, rest)| rest);
            self.0.extend(
                secret
                    .as_bytes()
                    .chunks(8)
                    .filter(|piece| piece.len() == 8)
                    .map(|piece| String::from_utf8(piece.to_vec()).unwrap()),
            );
        }
    }

    fn add_ids(&mut self, stage: &Stage) {
        for id in stage.store.ids() {
            let hex: String = id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            let numbers = format!("{:?}", &id.as_bytes()[..8]);
            let text = base64_simd::URL_SAFE_NO_PAD.encode_to_string(id.as_bytes());
            self.0.extend([hex[..8].into(), text[..8].into(), numbers.trim_matches(['[', ']']).into()]);
        }
    }

    fn assert_not_in(&self, what: &str, printed: &str) {
        for secret in &self.0 {
            assert!(!printed.contains(secret.as_str()), "{what} prints {secret}: {printed}");
        }
    }
}

async fn sign_in(auth: Auth) -> Result<(), portcullis::AuthError> {
    auth.login(SUBJECT).claim("guild", CLAIM)?.method("pwd").await
}

on_every_store!(debug_output_of_what_handlers_hold_tells_nothing, events_and_errors_tell_nothing);

async fn debug_output_of_what_handlers_hold_tells_nothing(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(sign_in).await.ok();
    browser.visit(write("way", VALUE)).await.ok();
    let prints = |session: Session, identity: Identity, auth: Auth, recent: RequireRecentAuth| async move {
        let login = auth.login(SUBJECT).claim("guild", CLAIM).unwrap();
        format!(
            "{session:?} {identity:?} {auth:?} {recent:?} {login:?} {:?} {:?}",
            auth.sessions().await.unwrap(),
            identity.session(),
        )
    };
    let mut printed = browser.visit(prints).await.ok();
    printed += &format!("{:?} {:?} {:?}", stage.layer, stage.keys, stage.layer.jwks());
    let mut secrets = Secrets::of(&stage);
    secrets.add(&browser);
    secrets.add_ids(&stage);
    secrets.assert_not_in("Debug", &printed);
    // `Session` is the core's type and prints the data it has loaded; only its store and its id are ours to keep mute.
    let prints_loaded = |session: Session| async move {
        session.get_value("way").await.unwrap();
        format!("{session:?}").replace(VALUE, "")
    };
    secrets.assert_not_in("Debug of a loaded Session", &browser.visit(prints_loaded).await.ok());
}

async fn events_and_errors_tell_nothing(stage: Stage) {
    let mut secrets = Secrets::of(&stage);
    let mut browser = stage.browser();
    browser.visit(sign_in).await.ok();
    secrets.add(&browser);
    let thief = browser.clone();
    browser.visit(write("way", VALUE)).await.ok();
    for _ in 0..2 {
        stage.pass(FRESH);
        browser.who().await;
        secrets.add(&browser);
    }
    browser.visit(reauthenticate).await.ok();
    secrets.add(&browser);
    stage.pass(GRACE);
    thief.ask(who).await.ok();
    stage.store.goes_down();
    let fails = |session: Session, auth: Auth| async move {
        let errors = (session.get_value("way").await.unwrap_err(), auth.logout().await.unwrap_err());
        format!("{errors:?} {} {}", errors.0, errors.1)
    };
    let errors = browser.ask(fails).await.ok();
    stage.store.comes_back();
    browser.visit(logout).await.ok();
    secrets.add_ids(&stage);
    let events = stage.events.take();
    assert!(events.len() > 5, "{events:?}");
    for event in events {
        secrets.assert_not_in("an event", &format!("{event:?} {}", event.detail()));
    }
    secrets.assert_not_in("an error", &errors);
}

/// Everything that `tracing` is told, at the lowest level, by us and by the core.
#[test]
fn the_log_tells_nothing() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let secrets = tracing::subscriber::with_default(subscriber, || {
        runtime.block_on(async {
            let stage = Stage::memory().await;
            let stage = stage.rebuilt(|builder| builder.events(portcullis::events::TracingSink::default()));
            let mut secrets = Secrets::of(&stage);
            let mut browser = stage.browser();
            browser.visit(sign_in).await.ok();
            secrets.add(&browser);
            browser.visit(write("way", VALUE)).await.ok();
            let thief = browser.clone();
            for _ in 0..2 {
                stage.pass(FRESH);
                browser.visit(read("way")).await.ok();
                secrets.add(&browser);
            }
            thief.ask(who).await.ok();
            thief.with_field("cookie", "__host-http-session=x").ask(page).await.ok();
            secrets.add_ids(&stage);
            secrets
        })
    });
    let printed = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(printed.contains("authn_token_reuse"), "{printed}");
    secrets.assert_not_in("the log", &printed);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
