//! Checks what is configured and builds the layer from it, or reports every problem at once.

use std::{str::FromStr as _, sync::Arc};

use http::HeaderName;

use super::{
    builder::SessionLayerBuilder,
    client_address::{ProxyError, TrustedProxies},
    config_error::{ConfigError, Problem},
    cross_site::{CrossSiteError, is_exact_path},
    device::{DeviceBinding, Devices, REFRESHES_AHEAD, is_initiator},
    layer::SessionLayer,
    manners::Manners,
    place::Network,
    sealed_cookies::SealedCookies,
    site::{Site, SiteCookies, default_scope},
    told::Told,
};
use crate::{
    cookie::{CookieDomain, DomainError, NameError, Origin, SameSite, Scope, SealedCookie, check_name},
    session::RenewalTokens,
    store::{Registry, RegistryParts, Vault},
};

impl SessionLayerBuilder {
    /// Checks everything and builds the layer.
    ///
    /// # Errors
    /// With every problem at once, each with its remedy. Nothing half-built exists then.
    pub fn build(self) -> Result<SessionLayer, ConfigError> {
        let mut problems = Vec::new();
        let origin = self.check_origin(&mut problems);
        if let Err(errors) = self.timeouts.check() {
            problems.extend(errors.into_iter().map(|error| Problem::new("timeouts", &error, error.remedy())));
        }
        if self.recent.is_zero() {
            problems.push(Problem::new("recent", &"it is zero", "set it to some minutes; the default is 5"));
        }
        if self.first_party_links && self.same_site != SameSite::Strict {
            let remedy = "leave it out, or set same_site() to Strict";
            problems.push(Problem::new("first_party_links", &"cookies arrive with links as it is", remedy));
        }
        if self.recent_proof.is_zero() {
            let remedy = "set it to some minutes; the default is 2";
            problems.push(Problem::new("recent_proof", &"it is zero", remedy));
        }
        let outage = self.outage.check().into_iter();
        problems.extend(outage.map(|error| Problem::new("outage", &error, error.remedy())));
        let scope = match &origin {
            Some(origin) => self.check_scope(origin, &mut problems),
            None => {
                self.check_domain_alone(&mut problems);
                None
            }
        };
        let cookies = scope.and_then(|scope| {
            match SiteCookies::new(scope, self.same_site, self.device_binding != DeviceBinding::Off) {
                Ok(cookies) => Some(cookies),
                Err(error) => {
                    problems.push(Problem::new("cookies", &error, "choose a shorter domain"));
                    None
                }
            }
        });
        let network = self.check_network(&mut problems);
        self.check_rules(cookies.as_ref(), &mut problems);
        self.check_devices(&mut problems);
        let (Some(origin), Some(cookies), []) = (origin, cookies, problems.as_slice()) else {
            return Err(ConfigError::of(problems));
        };
        let vault = Vault::new(&self.keys, origin.as_str());
        // Last, because it ties a new store to the ring: nothing else may be wrong by then.
        if let Err(error) = self.store.claim_index(vault.index_check()) {
            let remedy = "use the key ring this store was made with (its `index` line never changes), or an empty store";
            return Err(ConfigError::of(vec![Problem::new("store", &error, remedy)]));
        }
        if self.localhost {
            tracing::warn!(
                target: "portcullis",
                "localhost development mode: cookies without Secure and without a prefix; never use it for a real site"
            );
        }
        let [session_name, _] = cookies.names();
        let registry = Registry::new(RegistryParts {
            store: self.store,
            outage: self.outage,
            vault,
            tokens: RenewalTokens::new(&self.keys, origin.as_str()),
            cookie: SealedCookie::session(&self.keys, session_name, origin.as_str()),
            timeouts: self.timeouts,
            device_after: self.device_binding.required_after(),
            sink: self.sink,
            clock: self.clock,
        });
        let registry = registry.map_err(|error| {
            let fault = format!("the journal of revocations cannot be read and written: {error}");
            let remedy = "name a file in a folder that this process may write to";
            ConfigError::of(vec![Problem::new("outage", &fault, remedy)])
        })?;
        let whole_site = self.cookie_domain.as_deref().filter(|_| self.include_site);
        let devices = (self.device_binding != DeviceBinding::Off && origin.is_secure())
            .then(|| Devices::new(&self.keys, &origin, whole_site, self.initiators, self.software_keys));
        Ok(SessionLayer::new(Site {
            registry: Arc::new(registry),
            policy: self.policy,
            sealed: SealedCookies::new(&self.sealed, &self.keys, origin.as_str()),
            origin,
            cookies,
            cross_site: self.cross_site,
            network,
            binding: self.binding,
            manners: Manners::new(&self.clear, self.no_store),
            devices,
            told: Told::default(),
            polling: self.polling,
            recent: self.recent,
            recent_proof: self.recent_proof,
            first_party_links: self.first_party_links,
            keys: self.keys,
        }))
    }

    fn check_origin(&self, problems: &mut Vec<Problem>) -> Option<Origin> {
        let origin = match Origin::parse(&self.origin) {
            Ok(origin) => origin,
            Err(error) => {
                let fault = format!("`{}`: {error}", self.origin.escape_debug());
                problems.push(Problem::new(
                    "origin",
                    &fault,
                    "write it as browsers show it: https://app.example.com",
                ));
                return None;
            }
        };
        match (origin.is_secure(), self.localhost) {
            (true, false) | (false, true) => return Some(origin),
            (false, false) => problems.push(Problem::new(
                "origin",
                &format!("`{origin}` is plain HTTP"),
                "use https, or call danger_localhost_development() while you develop",
            )),
            (true, true) => problems.push(Problem::new(
                "danger_localhost_development",
                &format!("`{origin}` is not an http origin of the local machine"),
                "leave the call out: over https cookies are Secure everywhere",
            )),
        }
        None
    }

    /// What can be said of a domain while the origin is none.
    fn check_domain_alone(&self, problems: &mut Vec<Problem>) {
        let Some(domain) = &self.cookie_domain else { return };
        let its_own = Origin::parse(&format!("https://{domain}")).map_err(|_| DomainError::NotAName);
        if let Err(error) = its_own.and_then(|origin| CookieDomain::new(domain, &origin)) {
            problems.push(Self::wrong_domain(domain, error));
        }
    }

    fn wrong_domain(domain: &str, error: DomainError) -> Problem {
        let remedy = "name a registrable domain that the origin's host is in, or leave it out";
        Problem::new("cookie_domain", &format!("`{}`: {error}", domain.escape_debug()), remedy)
    }

    fn check_scope(&self, origin: &Origin, problems: &mut Vec<Problem>) -> Option<Scope> {
        let Some(domain) = &self.cookie_domain else { return Some(default_scope(origin)) };
        if !origin.is_secure() {
            let remedy = "leave it out: cookies of the local machine are not shared";
            problems.push(Problem::new("cookie_domain", &"localhost has no domain", remedy));
            return None;
        }
        match CookieDomain::new(domain, origin) {
            Ok(domain) => Some(Scope::Secure { domain: Some(domain), path: "/".into() }),
            Err(error) => {
                problems.push(Self::wrong_domain(domain, error));
                None
            }
        }
    }

    /// How requests reach the site, as far as that is configured without a problem.
    fn check_network(&self, problems: &mut Vec<Problem>) -> Network {
        let header = self.client_ip_header.as_deref().unwrap_or("x-forwarded-for");
        let proxies = if self.proxies.is_empty() {
            if self.client_ip_header.is_some() {
                let remedy =
                    "name the proxies with trusted_proxies(): from anybody else the header says nothing";
                problems.push(Problem::new("client_ip_header", &"no proxy is trusted", remedy));
            }
            None
        } else {
            if self.peer_address.is_none() {
                let remedy = "call peer_address(): without it nobody knows whether a request comes from them";
                problems.push(Problem::new("trusted_proxies", &"the peer's address is not known", remedy));
            }
            TrustedProxies::new(&self.proxies, header)
                .map_err(|errors| {
                    let setting = |error: &ProxyError| match error {
                        ProxyError::Header(_) => "client_ip_header",
                        _ => "trusted_proxies",
                    };
                    let problem = |error: ProxyError| Problem::new(setting(&error), &error, error.remedy());
                    problems.extend(errors.into_iter().map(problem));
                })
                .ok()
        };
        let looks_at_addresses = self.binding.wants_addresses() || self.network_of.is_some();
        if looks_at_addresses && self.peer_address.is_none() {
            let remedy =
                "call peer_address(), and behind a proxy trusted_proxies(); or use BindingPolicy::default()";
            problems.push(Problem::new("binding", &"addresses count, and nobody says what they are", remedy));
        }
        if self.binding.wants_networks() && self.network_of.is_none() {
            let remedy = "call network_lookup(), or leave the reaction to Network out";
            problems.push(Problem::new("binding", &"networks count, and nobody looks them up", remedy));
        }
        if self.binding.wants_a_header() && self.context_header.is_none() {
            let remedy = "call context_header(), or leave the reaction to Header out";
            problems.push(Problem::new("binding", &"a header counts, and none is named", remedy));
        }
        let context_header = match self.context_header.as_deref().map(HeaderName::from_str).transpose() {
            Ok(name) => name,
            Err(error) => {
                problems.push(Problem::new(
                    "context_header",
                    &error,
                    "name the header that the proxy writes",
                ));
                None
            }
        };
        if context_header.is_some() && self.proxies.is_empty() {
            let remedy = "name the proxy with trusted_proxies(): any client could write the header itself";
            problems.push(Problem::new("context_header", &"no proxy is trusted", remedy));
        }
        let (peer_address, network_of) = (self.peer_address.clone(), self.network_of.clone());
        Network { peer_address, proxies, network_of, context_header }
    }

    fn check_devices(&self, problems: &mut Vec<Problem>) {
        let initiators = self.initiators.iter();
        problems.extend(initiators.filter(|pattern| !is_initiator(pattern)).map(|pattern| {
            let fault = format!("`{}` is no host", pattern.escape_debug());
            Problem::new(
                "refresh_initiators",
                &fault,
                "write idp.example or *.partner.example, no scheme and no port",
            )
        }));
        if self.device_binding == DeviceBinding::Off {
            if !self.initiators.is_empty() {
                let remedy = "choose a device_binding(), or name no initiators";
                problems.push(Problem::new("refresh_initiators", &"no session is bound to a device", remedy));
            }
            if self.include_site {
                let remedy = "choose a device_binding(), or leave it out";
                problems.push(Problem::new("include_site", &"no session is bound to a device", remedy));
            }
            if self.software_keys {
                let remedy = "choose a device_binding(): the script's key is for browsers that do without";
                problems.push(Problem::new("software_keys", &"no session is bound to a device", remedy));
            }
            return;
        }
        let is_whole_site = |domain: &String| {
            let origin = Origin::parse(&self.origin).ok();
            origin
                .and_then(|origin| CookieDomain::new(domain, &origin).ok())
                .is_some_and(|domain| domain.is_registrable())
        };
        if self.include_site && !self.cookie_domain.as_ref().is_some_and(is_whole_site) {
            let remedy =
                "set cookie_domain() to the registrable domain, such as example.com, or leave it out";
            problems.push(Problem::new(
                "include_site",
                &"the session cookie is not one of the whole site",
                remedy,
            ));
        }
        if self.timeouts.fresh <= REFRESHES_AHEAD {
            let remedy = "set `fresh` to more than 2 minutes: browsers refresh that much ahead, with less before every request";
            let fault = format!("`fresh` ({:?}) is too short for it", self.timeouts.fresh);
            problems.push(Problem::new("device_binding", &fault, remedy));
        }
        if self.device_binding.required_after().is_some_and(|after| after < self.timeouts.grace) {
            let fault = "a device is required before a browser can have bound one";
            problems.push(Problem::new("device_binding", &fault, "require it after a minute or later"));
        }
    }

    /// What cookies and requests of the application are held against.
    fn check_rules(&self, cookies: Option<&SiteCookies>, problems: &mut Vec<Problem>) {
        let policy = self.policy.check();
        problems.extend(policy.iter().map(|error| Problem::new("cookie_policy", error, error.remedy())));
        let in_development = self.localhost;
        for error in self.cross_site.check(in_development) {
            problems.push(match error {
                CrossSiteError::Origin(text, error) => Problem::new(
                    "cross_site",
                    &format!("the trusted origin `{}`: {error}", text.escape_debug()),
                    "write it as browsers show it: https://accounts.example.com",
                ),
                CrossSiteError::Route(path) => Problem::new(
                    "cross_site",
                    &format!("the route `{}` is not one exact path", path.escape_debug()),
                    EXACT_PATH,
                ),
            });
        }
        for path in self.polling.iter().filter(|path| !is_exact_path(path)) {
            let fault = format!("`{}` is not one exact path", path.escape_debug());
            problems.push(Problem::new("polling_route", &fault, EXACT_PATH));
        }
        for (at, name) in self.sealed.iter().enumerate() {
            let fault = match check_name(name) {
                Err(NameError::Prefix) => {
                    "it begins with a prefix in other letters, or with none that browsers know".into()
                }
                Err(error) => error.to_string(),
                Ok(()) if self.sealed.iter().take(at).any(|other| other == name) => "it stands twice".into(),
                Ok(()) if cookies.is_some_and(|cookies| cookies.names().contains(&name.as_str())) => {
                    "it is the session's own".into()
                }
                Ok(()) => continue,
            };
            let fault = format!("`{}`: {fault}", name.escape_debug());
            problems.push(Problem::new("seal_cookie", &fault, "name a cookie of the application, once"));
        }
    }
}

const EXACT_PATH: &str = "write the path as it stands in the URL, beginning with /; patterns are not taken";
