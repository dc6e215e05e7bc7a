//! What the environment says.

use std::{env, ffi::OsString, path::PathBuf};

/// Where to listen and what to keep where.
pub(crate) struct Settings {
    /// 0 lets the operating system pick.
    pub(crate) port: u16,
    pub(crate) database: PathBuf,
    pub(crate) keys: PathBuf,
}

impl Settings {
    /// Reads the environment; the error says which variable is wrong.
    pub(crate) fn from_env() -> Result<Self, String> {
        Ok(Self {
            port: port(env::var_os("PORT"))?,
            database: path("PORTCULLIS_DB", "quickstart.db"),
            keys: path("SESSION_KEYS_FILE", "quickstart.keys"),
        })
    }

    /// Which files belong together, for whoever has mixed them up.
    pub(crate) fn which_files(&self) -> String {
        let Self { database, keys, .. } = self;
        format!("Here the key ring is {}, the store is {}.", keys.display(), database.display())
    }
}

fn port(value: Option<OsString>) -> Result<u16, String> {
    let Some(value) = value else { return Ok(3000) };
    let text = value.to_string_lossy();
    text.parse().map_err(|_| {
        format!("PORT is `{text}`: set it to a number from 1 to 65535, or to 0 for any free port")
    })
}

/// A variable that is set but empty counts as not set: nobody means a file without a name.
fn path(variable: &str, default: &str) -> PathBuf {
    env::var_os(variable).filter(|value| !value.is_empty()).unwrap_or_else(|| default.into()).into()
}
