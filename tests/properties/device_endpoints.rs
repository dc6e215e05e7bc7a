//! The endpoints of sessions that are bound to keys: whatever comes, they answer by their table, and nothing but a proof by the right
//! key over a challenge of the session gets a cookie (attack A72).

use std::{cell::RefCell, convert::Infallible, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use portcullis::{
    Auth, DeviceBinding, KeyRing, MemoryStore, SessionLayer,
    clock::{ManualClock, Timestamp},
    events::{EventSink, SessionEvent},
    middleware::DeviceEndpoints,
};
use tower::{Layer as _, Service as _, service_fn};

use super::{
    device::{Device, Offer, challenge_of},
    edits::edited,
    site::{ORIGIN, USER_AGENT},
};

/// The first byte says what the others are: an identifier, a proof as it stands, or changes to an honest proof, to its header or to
/// its payload, rightly signed again; and of which endpoint.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    SITE.with_borrow_mut(|site| {
        let (path, challenge) = match kind / 6 % 3 {
            0 => (REFRESH, site.device.challenge.clone()),
            1 => (REGISTER, site.offer.challenge.clone()),
            _ => (KEY, site.key.challenge.clone()),
        };
        let honest = |header: &[u8], payload: &[u8]| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            site.device.sign_payload(&text(header), &text(payload))
        };
        let header = site.device.header(if path == KEY { "portcullis-key+jwt" } else { "dbsc+jwt" });
        let payload = format!(r#"{{"jti":"{challenge}"}}"#);
        let (header, payload) = (header.as_bytes(), payload.as_bytes());
        let proof = match kind % 6 {
            0 => {
                site.answers(path, &[("sec-secure-session-id", data)], false);
                return;
            }
            1 => data.to_vec(),
            2 => edited(honest(header, payload).as_bytes(), data),
            3 => honest(&edited(header, data), payload).into_bytes(),
            4 => honest(header, &edited(payload, data)).into_bytes(),
            _ => honest(data, payload).into_bytes(),
        };
        // Signatures are the same each time (RFC 6979).
        let whole = honest(header, payload);
        // Whatever was changed of what is signed, the challenge must be in it still; of the proof itself, every byte.
        let may_be_taken = match kind % 6 {
            1 | 2 => proof == whole.as_bytes() || proof == format!("\"{whole}\"").as_bytes(),
            4 => edited(payload, data).windows(challenge.len()).any(|part| part == challenge.as_bytes()),
            _ => true,
        };
        if let Some(response) = site.answers(path, &[("secure-session-response", &proof)], may_be_taken) {
            site.goes_on(path, &response);
        }
    });
}

struct Site {
    runtime: tokio::runtime::Runtime,
    layer: SessionLayer,
    endpoints: DeviceEndpoints,
    /// Bound as a device's; what it holds.
    device: Device,
    bound: String,
    /// Of a login that is bound to nothing yet.
    offer: Offer,
    unbound: String,
    /// Bound as a script's.
    key: Device,
    keyed: String,
}

thread_local! {
    static SITE: RefCell<Site> = RefCell::new(Site::new());
}

#[derive(Debug)]
struct Deaf;

impl EventSink for Deaf {
    fn record(&self, _: &SessionEvent) {}
}

impl Site {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = MemoryStore::with_clock(Arc::clone(&clock) as _);
        let layer = SessionLayer::builder(ORIGIN, KeyRing::generate().unwrap(), store)
            .clock(clock as _)
            .events(Deaf)
            .device_binding(DeviceBinding::Offer)
            .software_keys()
            .build()
            .unwrap();
        runtime.block_on(layer.ready()).unwrap();
        let mut site = Self {
            endpoints: layer.device_endpoints(),
            runtime,
            layer,
            device: Device::new(7),
            bound: String::new(),
            offer: Offer { path: String::new(), challenge: String::new() },
            unbound: String::new(),
            key: Device::new(7),
            keyed: String::new(),
        };
        let offer;
        (offer, site.bound) = site.sign_in();
        (site.offer, site.unbound) = site.sign_in();
        (_, site.keyed) = site.sign_in();
        let proof = site.device.registration(&offer.challenge);
        let (bound, fields) = (site.bound.clone(), [("secure-session-response", proof.as_bytes())]);
        let response = site.call(REGISTER, &bound, &fields).unwrap();
        site.device.take(response.body(), response.headers()["secure-session-challenge"].to_str().unwrap());
        let keyed = site.keyed.clone();
        let asked = challenge(&site.call(KEY, &keyed, &[]).unwrap());
        let proof = site.key.by_script(&asked);
        let response = site.call(KEY, &keyed, &[("secure-session-response", proof.as_bytes())]).unwrap();
        site.goes_on(KEY, &response);
        site
    }

    /// A login, what it offers and what its browser holds.
    fn sign_in(&self) -> (Offer, String) {
        let login = service_fn(|request: Request<()>| async move {
            Auth::from_extensions(request.extensions()).unwrap().login("alice").await.unwrap();
            Ok::<_, Infallible>(Response::new(String::new()))
        });
        let request = Request::builder().header(header::USER_AGENT, USER_AGENT).body(()).unwrap();
        let response = self.runtime.block_on(self.layer.layer(login).call(request)).unwrap();
        let offer = response.headers()["secure-session-registration"].to_str().unwrap();
        (Offer::read(offer).unwrap(), cookies(response.headers()))
    }

    /// A proof was taken: so that the next one is judged alone, it answers a challenge that is good again.
    fn goes_on(&mut self, path: &str, response: &Response<String>) {
        if !response.headers().contains_key(header::SET_COOKIE) {
            return;
        }
        match path {
            REGISTER => (self.offer, self.unbound) = self.sign_in(),
            REFRESH => {
                let field = response.headers()["secure-session-challenge"].to_str().unwrap();
                self.device.challenge = challenge_of(field, &self.device.identifier).unwrap();
            }
            _ => {
                self.key.challenge = challenge(response);
                // Right after the first one its token goes on; only the binding gives another.
                let set = cookies(response.headers());
                if set.contains("renewal=") {
                    self.keyed = set;
                }
            }
        }
    }

    fn call(
        &self,
        path: &'static str,
        cookie: &str,
        fields: &[(&'static str, &[u8])],
    ) -> Option<Response<String>> {
        let mut request = Request::builder().method("POST").uri(path).header(header::USER_AGENT, USER_AGENT);
        request = request.header(header::ORIGIN, ORIGIN).header(header::COOKIE, cookie);
        let mut request = request.header("portcullis-key", "ask").body(()).unwrap();
        for (name, value) in fields {
            // What cannot stand in a field never reaches it.
            let value = HeaderValue::from_bytes(value).ok()?;
            request.headers_mut().append(HeaderName::from_static(name), value);
        }
        let response = self.runtime.block_on(self.endpoints.clone().call(request));
        Some(response.unwrap_or_else(|never| match never {}))
    }

    fn answers(
        &self,
        path: &'static str,
        fields: &[(&'static str, &[u8])],
        may_be_taken: bool,
    ) -> Option<Response<String>> {
        let mut fields = fields.to_vec();
        let cookie = match path {
            REGISTER => &self.unbound,
            KEY => &self.keyed,
            _ => &self.bound,
        };
        if path == REFRESH && may_be_taken || fields.iter().all(|(name, _)| *name != "sec-secure-session-id")
        {
            fields.push(("sec-secure-session-id", self.device.identifier.as_bytes()));
        }
        let response = self.call(path, cookie, &fields)?;
        let allowed: &[u16] = if path == KEY { &[200] } else { &[200, 400, 401, 403] };
        assert!(allowed.contains(&response.status().as_u16()), "{path} {fields:?}: {}", response.status());
        let sets = response.headers().contains_key(header::SET_COOKIE);
        assert!(may_be_taken || !sets, "{path} {fields:?}");
        assert!(!sets || response.status() == StatusCode::OK);
        if response.status() == StatusCode::FORBIDDEN && path == REFRESH {
            let challenge = response.headers()["secure-session-challenge"].to_str().unwrap();
            assert!(challenge_of(challenge, &self.device.identifier).is_some(), "a browser signs it");
        }
        Some(response)
    }
}

/// What a script is to sign.
fn challenge(response: &Response<String>) -> String {
    let told: serde_json::Value = serde_json::from_str(response.body()).unwrap();
    told["challenge"].as_str().unwrap().to_owned()
}

/// What a browser sends of what an answer has set.
fn cookies(headers: &HeaderMap) -> String {
    let lines = headers.get_all(header::SET_COOKIE).iter();
    let pairs: Vec<_> = lines.filter_map(|line| line.to_str().unwrap().split(';').next()).collect();
    pairs.join("; ")
}

const REGISTER: &str = "/portcullis/device/register";
const REFRESH: &str = "/portcullis/device/refresh";
const KEY: &str = "/portcullis/key";
