//! The pages. The one value that a user has written is escaped.

use axum::response::Html;
use portcullis::{DeviceInfo, Identity, Strength};

pub(crate) fn login() -> Html<String> {
    page(
        "<h1>Sign in</h1>
<form method=post action=/login>
<p><label>Any name <input name=user value=alice required maxlength=64 autofocus></label> <button>Sign in</button>
</form>",
    )
}

pub(crate) fn home(identity: &Identity, device: Option<DeviceInfo>) -> Html<String> {
    let proven = device.map_or_else(
        || "never".to_owned(),
        |device| {
            let (hour, minute, second) = device.proven.to_hms();
            let when = if device.confirmed { "" } else { ", when it was bound" };
            format!("{hour:02}:{minute:02}:{second:02} UTC{when}")
        },
    );
    let says = match identity.strength() {
        Strength::Device => {
            "A copy of its cookies is worth nothing in another browser five minutes from now."
        }
        Strength::SoftwareKey => {
            "A script keeps its key: a copy of the cookies is worth nothing, a copy of the browser's whole profile is."
        }
        _ => {
            "This browser has bound no key (yet: it takes a few seconds after the login; then load the page again)."
        }
    };
    page(&format!(
        "<h1>Hello {}</h1>
<dl><dt>Strength of this session<dd>{}<dt>Last proof of its key<dd>{proven}</dl>
<p>{says}
<p><a href=/>Load again</a>
<form method=post action=/pay><button>Pay (wants a device)</button></form>
<form method=post action=/logout><button>Sign out</button></form>
<p>To see it renew, delete the cookie <code>__Host-session</code> in the developer tools and load the page again.",
        escape(identity.subject()),
        identity.strength().name()
    ))
}

pub(crate) fn paid(identity: &Identity) -> Html<String> {
    page(&format!(
        "<h1>Paid</h1><p>{}, from a bound session.<p><a href=/>Back</a>",
        escape(identity.subject())
    ))
}

fn page(main: &str) -> Html<String> {
    Html(format!(
        "<!doctype html>
<html lang=en>
<meta charset=utf-8>
<meta name=viewport content=\"width=device-width, initial-scale=1\">
<meta name=color-scheme content=\"light dark\">
<title>Portcullis: device-bound sessions</title>
<link rel=icon href=data:,>
<script src=/portcullis/keeper.js defer></script>
<style>body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}
dt {{ font-weight: 600 }} form {{ margin: .5rem 0 }}</style>
<main>
{main}
</main>
</html>
"
    ))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
