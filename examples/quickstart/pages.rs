//! The three pages: sign-in, home, and the one for a store that cannot be reached.

use portcullis::{Identity, SessionInfo, Strength, Timeouts};
use time::OffsetDateTime;

use crate::{
    html::{Page, escape},
    users, words,
};

/// What the home page tells.
pub(crate) struct Home {
    pub(crate) identity: Identity,
    pub(crate) visits: u64,
    pub(crate) sessions: Vec<SessionInfo>,
    pub(crate) timeouts: Timeouts,
}

/// What is kept of a sign-in that failed. The password is not.
pub(crate) struct WrongAttempt<'a> {
    pub(crate) user: &'a str,
    pub(crate) remember: bool,
}

/// The sign-in form; after a wrong attempt with a message, and with what was typed.
pub(crate) fn sign_in(wrong: Option<&WrongAttempt<'_>>) -> Page {
    let (title, alert, invalid) = match wrong {
        Some(_) => (
            "Sign-in failed",
            r#"<p class="alert" id="wrong" role="alert">That name and password do not belong together.</p>"#,
            r#" aria-invalid="true" aria-describedby="wrong""#,
        ),
        None => ("Sign in", "", ""),
    };
    let user = escape(wrong.map_or("", |wrong| wrong.user));
    let checked = if wrong.is_some_and(|wrong| wrong.remember) { " checked" } else { "" };
    let password = escape(users::PASSWORD);
    let main = format!(
        r#"<h1>Sign in</h1>
<form class="card" method="post" action="/login">
{alert}
<label for="user">User name</label>
<input id="user" name="user" value="{user}" autocomplete="username" autocapitalize="none" spellcheck="false"
 required{invalid}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required{invalid}>
<label class="check"><input name="remember" type="checkbox" value="yes"{checked}> Remember me</label>
<button class="primary">Sign in</button>
</form>
<p class="hint">Try <kbd>alice</kbd> or <kbd>bob</kbd> with the password <kbd>{password}</kbd>.</p>"#
    );
    Page { title, main }
}

/// For somebody who is signed in: a greeting, the session, the list of sessions.
pub(crate) fn home(home: &Home) -> Page {
    let name = escape(home.identity.subject());
    let visits = escape(words::count(home.visits, "visit"));
    let session = session_facts(&home.identity, &home.timeouts);
    let list: String = home.sessions.iter().map(list_item).collect();
    let main = format!(
        r#"<h1>Hello, {name}</h1>
<p class="lead">{visits} since you signed in.</p>
<section class="card" aria-labelledby="this">
<h2 id="this">This session</h2>
{session}
<form method="post" action="/logout"><button class="primary">Sign out</button></form>
</section>
<section class="card" aria-labelledby="all">
<h2 id="all">Where you are signed in</h2>
<ul class="sessions">
{list}</ul>
<form method="post" action="/logout-everywhere"><button class="danger">Sign out everywhere</button></form>
</section>"#
    );
    Page { title: "Home", main }
}

/// The sessions cannot be read or written. It claims neither success nor failure of what was sent: nobody knows.
pub(crate) fn unavailable() -> Page {
    let main = r#"<h1>Please try again in a moment</h1>
<div class="card">
<p>Sessions cannot be reached just now, so what you just sent may not have been saved.</p>
<p><a href="/">Try again</a></p>
</div>"#;
    Page { title: "Not available", main: main.into() }
}

fn session_facts(identity: &Identity, timeouts: &Timeouts) -> String {
    let signed_in = time(identity.authenticated_at());
    let strength = escape(strength(identity.strength()));
    let idle = escape(words::span(timeouts.idle_of(identity.is_remembered())));
    let absolute = escape(words::span(timeouts.absolute_of(identity.is_remembered())));
    let reason = if identity.is_remembered() { ", because you asked to be remembered" } else { "" };
    format!(
        "<dl>
<div><dt>Signed in</dt><dd>{signed_in}</dd></div>
<div><dt>Strength</dt><dd>{strength}</dd></div>
<div><dt>Ends</dt><dd>After up to {idle} without a visit, at the latest {absolute} after signing in{reason}.</dd></div>
</dl>"
    )
}

fn strength(strength: Strength) -> &'static str {
    match strength {
        Strength::Context => "Context: tied to this kind of browser, refused from another.",
        Strength::Remembered => "Remembered: quiet for long, so not enough for what needs a recent sign-in.",
        // More may come, such as a key that the device holds.
        other => other.name(),
    }
}

fn list_item(session: &SessionInfo) -> String {
    let client = escape(&session.client);
    let handle = escape(session.handle);
    let signed_in = time(session.created);
    let renewed = time(session.renewed);
    let badge = if session.current { r#" <span class="badge">this one</span>"# } else { "" };
    // The hidden words tell buttons apart for those who hear the page.
    format!(
        r#"<li>
<h3>{client}{badge}</h3>
<p>Signed in {signed_in}<br>Last renewed {renewed}</p>
<form method="post" action="/sessions/{handle}/revoke">
<button>Sign out this one<span class="hidden">: {client}, signed in {signed_in}</span></button>
</form>
</li>
"#
    )
}

fn time(at: OffsetDateTime) -> String {
    let machine = escape(words::instant_for_machines(at));
    format!(r#"<time datetime="{machine}">{}</time>"#, escape(words::instant(at)))
}
