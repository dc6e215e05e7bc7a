//! What is wrong with a configuration: everything at once, each with its remedy.

use std::fmt;

/// A setting that cannot be as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    setting: &'static str,
    fault: String,
    remedy: &'static str,
}

impl Problem {
    pub(super) fn new(setting: &'static str, fault: &dyn fmt::Display, remedy: &'static str) -> Self {
        Self { setting, fault: fault.to_string(), remedy }
    }

    /// The setting: an argument or method of the builder.
    #[must_use]
    pub const fn setting(&self) -> &'static str {
        self.setting
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        self.remedy
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}. Remedy: {}.", self.setting, self.fault, self.remedy)
    }
}

/// Why there is no layer: every problem of the configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    pub(super) const fn of(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// The problems, in the order of the settings.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the session layer cannot be built:")?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
    }
}

/// As `Display`, because `main` shows an error with `Debug`.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigError {}
