//! Settings of the model and its server, given to the program as variables. Without them no model is asked.

use std::{fmt, net::IpAddr, time::Duration};

use ureq::http::{HeaderValue, Uri};

/// Base URL of the model's server. Requests are sent to `{this}/chat/completions`.
pub const BASE_URL: &str = "FILE_EDITOR_LLM_BASE_URL";
/// Name of the model, as its server knows it.
pub const MODEL: &str = "FILE_EDITOR_LLM_MODEL";
/// Optional: the API key that the server requires.
pub const API_KEY: &str = "FILE_EDITOR_LLM_API_KEY";
/// Optional: timeout of one answer, in seconds.
pub const TIMEOUT: &str = "FILE_EDITOR_LLM_TIMEOUT";

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// Longest timeout of one answer, in seconds.
const TIMEOUT_SECONDS_MAX: u64 = 3600;
/// Longest name, key or address, in bytes.
const VALUE_BYTES_MAX: usize = 4096;

/// Reason why the settings cannot be used. No message contains a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingsError {
    #[error("{set} is set but {missing} is not: a model needs both")]
    OneOfTwo { set: &'static str, missing: &'static str },
    #[error("{BASE_URL} must be an address such as `http://127.0.0.1:8080/v1`: {reason}")]
    BadUrl { reason: &'static str },
    #[error("{TIMEOUT} must be a whole number of seconds from 1 to {TIMEOUT_SECONDS_MAX}")]
    BadTimeout,
    #[error("{MODEL} must be one line")]
    BadModel,
    #[error("{API_KEY} contains characters that an HTTP header cannot carry")]
    BadKey,
    #[error(
        "{API_KEY} would be sent unencrypted, since {BASE_URL} is `http://` on another machine: use `https://`, or unset the key"
    )]
    KeyInTheClear,
}

/// The model, its server, the key and the timeout.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Base URL without a slash at its end.
    base_url: String,
    host: Host,
    port: u16,
    model: String,
    key: Option<String>,
    timeout: Duration,
}

/// Host of the model's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name that must be resolved before a connection is made.
    Name(String),
    Address(IpAddr),
}

impl Host {
    fn is_this_machine(&self) -> bool {
        match self {
            Self::Name(name) => name.eq_ignore_ascii_case("localhost"),
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }
}

impl Settings {
    /// Reads the four variables above and no other: sending code to a server must be configured explicitly, not follow
    /// from the settings of another program. `None` if no model is configured. A blank variable counts as not set.
    pub fn from_variables(
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, SettingsError> {
        let get =
            |name| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let (base_url, model) = match (get(BASE_URL), get(MODEL)) {
            (None, None) => return Ok(None),
            (Some(base_url), Some(model)) => (base_url, model),
            (Some(_), None) => {
                return Err(SettingsError::OneOfTwo { set: BASE_URL, missing: MODEL });
            }
            (None, Some(_)) => {
                return Err(SettingsError::OneOfTwo { set: MODEL, missing: BASE_URL });
            }
        };
        let (scheme, host, port) = parts(&base_url)?;
        if model.len() > VALUE_BYTES_MAX || model.contains(char::is_control) {
            return Err(SettingsError::BadModel);
        }
        let key = get(API_KEY);
        if let Some(key) = &key {
            if key.len() > VALUE_BYTES_MAX || HeaderValue::from_str(key).is_err() {
                return Err(SettingsError::BadKey);
            }
            // Code alone may be sent over a network that its owner trusts. A key is valuable anywhere, and does not
            // change.
            if scheme == Scheme::Plain && !host.is_this_machine() {
                return Err(SettingsError::KeyInTheClear);
            }
        }
        let timeout = get(TIMEOUT).map_or(Ok(DEFAULT_TIMEOUT), |value| seconds(&value))?;
        let base_url = base_url.trim_end_matches('/').to_owned();
        Ok(Some(Self { base_url, host, port, model, key, timeout }))
    }

    /// Name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// TCP port of the model's server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Timeout of one answer.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/chat/completions", self.base_url)
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

/// Hides the key.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("key", &self.key.as_ref().map(|_| "hidden"))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Plain,
    Tls,
}

fn parts(url: &str) -> Result<(Scheme, Host, u16), SettingsError> {
    let bad = |reason| SettingsError::BadUrl { reason };
    if url.len() > VALUE_BYTES_MAX {
        return Err(bad("it is too long"));
    }
    // A fragment would be dropped silently, and a query would end up before the path that is added.
    if url.contains(['?', '#']) {
        return Err(bad("it has a `?` or a `#`"));
    }
    let uri: Uri = url.parse().map_err(|_| bad("it is not an address"))?;
    let (scheme, port) = match uri.scheme_str() {
        Some("http") => (Scheme::Plain, 80),
        Some("https") => (Scheme::Tls, 443),
        _ => return Err(bad("it does not begin with `http://` or `https://`")),
    };
    let authority = uri.authority().ok_or(bad("it has no host"))?;
    if authority.as_str().contains('@') {
        return Err(bad("it contains a user or a password; set the key in its own variable"));
    }
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    if name.is_empty() {
        return Err(bad("it has no host"));
    }
    let port = match authority.as_str().strip_prefix(authority.host()) {
        None | Some("") => port,
        Some(_) => {
            authority.port_u16().filter(|port| *port > 0).ok_or(bad("its port is invalid"))?
        }
    };
    let host = name.parse().map_or_else(|_| Host::Name(name.to_owned()), Host::Address);
    Ok((scheme, host, port))
}

fn seconds(value: &str) -> Result<Duration, SettingsError> {
    match value.parse() {
        Ok(seconds @ 1..=TIMEOUT_SECONDS_MAX) => Ok(Duration::from_secs(seconds)),
        _ => Err(SettingsError::BadTimeout),
    }
}
