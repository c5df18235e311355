//! Which model is asked, and how it is reached: said by whoever starts the program, or nobody is asked.

use std::{fmt, net::IpAddr, time::Duration};

use ureq::http::{HeaderValue, Uri};

/// Where the model's server is. Asked are `{this}/chat/completions`.
pub const BASE_URL: &str = "FILE_EDITOR_LLM_BASE_URL";
/// The name of the model, as its server knows it.
pub const MODEL: &str = "FILE_EDITOR_LLM_MODEL";
/// Optional: what the server wants to see before it answers.
pub const API_KEY: &str = "FILE_EDITOR_LLM_API_KEY";
/// Optional: how many seconds one answer may take.
pub const TIMEOUT: &str = "FILE_EDITOR_LLM_TIMEOUT";

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// In seconds. Nobody waits longer for one answer.
const LONGEST_TIMEOUT: u64 = 3600;
/// In bytes. A name, a key or an address is shorter.
const LONGEST_VALUE: usize = 4096;

/// Why the settings cannot be used. No message shows a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingsError {
    #[error("{set} is set and {missing} is not: a model is asked only when both are")]
    OneOfTwo { set: &'static str, missing: &'static str },
    #[error("{BASE_URL} must be an address such as `http://127.0.0.1:8080/v1`: {reason}")]
    BadUrl { reason: &'static str },
    #[error("{TIMEOUT} must be a whole number of seconds from 1 to {LONGEST_TIMEOUT}")]
    BadTimeout,
    #[error("{MODEL} must be a name of one line")]
    BadModel,
    #[error("{API_KEY} has characters that no key has")]
    BadKey,
    #[error(
        "{API_KEY} is set and {BASE_URL} is `http://` on another machine, so that anybody on the way could read the \
         key: use `https://`, or set no key"
    )]
    KeyInTheClear,
}

/// Who is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Without a slash at its end.
    base_url: String,
    host: Host,
    port: u16,
    model: String,
    key: Option<String>,
    timeout: Duration,
}

/// The machine the model is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Has to be looked up before it can be called.
    Name(String),
    Address(IpAddr),
}

impl Host {
    fn is_this_machine(&self) -> bool {
        match self {
            Host::Name(name) => name.eq_ignore_ascii_case("localhost"),
            Host::Address(address) => address.to_canonical().is_loopback(),
        }
    }
}

impl Settings {
    /// Reads the four variables above and no other: that code is sent to somebody must be said in so many words, not
    /// follow from what another program was told. `None`: no model is wanted. A variable that is blank is not set.
    pub fn from_variables(
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Settings>, SettingsError> {
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
        if model.len() > LONGEST_VALUE || model.contains(char::is_control) {
            return Err(SettingsError::BadModel);
        }
        let key = get(API_KEY);
        if let Some(key) = &key {
            if key.len() > LONGEST_VALUE || HeaderValue::from_str(key).is_err() {
                return Err(SettingsError::BadKey);
            }
            // Code alone may go over a network its owner trusts. A key is worth something anywhere, and does not change.
            if scheme == Scheme::Plain && !host.is_this_machine() {
                return Err(SettingsError::KeyInTheClear);
            }
        }
        let timeout = get(TIMEOUT).map_or(Ok(DEFAULT_TIMEOUT), |value| seconds(&value))?;
        let base_url = base_url.trim_end_matches('/').to_owned();
        Ok(Some(Settings { base_url, host, port, model, key, timeout }))
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The TCP port that is called.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How long one answer may take.
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

/// Everything but the key.
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
    if url.len() > LONGEST_VALUE {
        return Err(bad("it is too long"));
    }
    // A fragment would be dropped without a word, and a query would end up before the path that is added.
    if url.contains(['?', '#']) {
        return Err(bad("it has a `?` or a `#`"));
    }
    let uri: Uri = url.parse().map_err(|_| bad("it is no address"))?;
    let (scheme, port) = match uri.scheme_str() {
        Some("http") => (Scheme::Plain, 80),
        Some("https") => (Scheme::Tls, 443),
        _ => return Err(bad("it does not begin with `http://` or `https://`")),
    };
    let authority = uri.authority().ok_or(bad("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(bad("it has a user or a password in it, which belong into the key's variable"));
    }
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    if name.is_empty() {
        return Err(bad("it names no host"));
    }
    let port = match authority.as_str().strip_prefix(authority.host()) {
        None | Some("") => port,
        Some(_) => authority.port_u16().filter(|port| *port > 0).ok_or(bad("its port is none"))?,
    };
    let host = name.parse().map_or_else(|_| Host::Name(name.to_owned()), Host::Address);
    Ok((scheme, host, port))
}

fn seconds(value: &str) -> Result<Duration, SettingsError> {
    match value.parse() {
        Ok(seconds @ 1..=LONGEST_TIMEOUT) => Ok(Duration::from_secs(seconds)),
        _ => Err(SettingsError::BadTimeout),
    }
}
