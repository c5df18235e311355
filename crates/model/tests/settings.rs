//! Settings from variables, and their errors.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{cell::RefCell, time::Duration};

use model::{Host, Settings, SettingsError};

type Variables<'a> = &'a [(&'a str, &'a str)];

fn read(variables: Variables<'_>) -> Result<Option<Settings>, SettingsError> {
    let value = |name: &str| {
        let name = name.strip_prefix("FILE_EDITOR_LLM_").unwrap();
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    Settings::from_variables(value)
}

fn with_url(url: &str) -> Result<Settings, SettingsError> {
    read(&[("BASE_URL", url), ("MODEL", "m")]).map(Option::unwrap)
}

#[test]
fn no_model_is_asked_unless_both_variables_are_set() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[("BASE_URL", " "), ("MODEL", ""), ("API_KEY", "k")]), Ok(None));
    let told = |variables| read(variables).unwrap_err().to_string();
    assert_eq!(
        told(&[("BASE_URL", "http://127.0.0.1")]),
        "FILE_EDITOR_LLM_BASE_URL is set but FILE_EDITOR_LLM_MODEL is not: a model needs both"
    );
    assert_eq!(
        told(&[("MODEL", "m")]),
        "FILE_EDITOR_LLM_MODEL is set but FILE_EDITOR_LLM_BASE_URL is not: a model needs both"
    );
}

#[test]
fn four_variables_are_read_and_no_other() {
    let names = RefCell::new(Vec::new());
    let _ = Settings::from_variables(|name| {
        names.borrow_mut().push(name.to_owned());
        Some(if name.ends_with("URL") { "http://localhost" } else { "7" }.to_owned())
    })
    .unwrap();
    let mut names = names.into_inner();
    names.sort();
    names.dedup();
    let expected = ["API_KEY", "BASE_URL", "MODEL", "TIMEOUT"];
    assert_eq!(names, expected.map(|name| format!("FILE_EDITOR_LLM_{name}")));
}

#[test]
fn where_the_model_is_follows_from_the_address() {
    let check = |url, host: &str, port| {
        let settings = with_url(url).unwrap();
        let told = match settings.host() {
            Host::Name(name) => format!("name {name}"),
            Host::Address(address) => format!("address {address}"),
        };
        assert_eq!((told.as_str(), settings.port()), (host, port), "{url}");
    };
    check("http://localhost:8080/v1", "name localhost", 8080);
    check("http://127.0.0.1:11434", "address 127.0.0.1", 11434);
    check("http://[::1]:1/", "address ::1", 1);
    check("https://[2001:db8::1]/v1", "address 2001:db8::1", 443);
    check("https://api.example.com/openai/v1/", "name api.example.com", 443);
    check("http://box", "name box", 80);
    check("  HTTPS://api.example.com  ", "name api.example.com", 443);
}

#[test]
fn an_address_that_is_none_is_refused() {
    let check = |url, reason: &str| {
        let told = with_url(url).unwrap_err().to_string();
        assert!(told.starts_with("FILE_EDITOR_LLM_BASE_URL must be"), "{told}");
        assert!(told.ends_with(reason), "{url}: {told}");
    };
    check("localhost:8080", "it does not begin with `http://` or `https://`");
    check("ftp://host", "it does not begin with `http://` or `https://`");
    check("/v1", "it does not begin with `http://` or `https://`");
    check("http://", "it is not an address");
    check("http://ho st/", "it is not an address");
    check("http://host:port/", "its port is invalid");
    check("http://host:99999/", "its port is invalid");
    check("http://host:0/", "its port is invalid");
    check("http://:80/", "it has no host");
    check("http://host/v1?key=1", "it has a `?` or a `#`");
    check("http://host/#v1", "it has a `?` or a `#`");
    check(
        "https://me:secret@host/",
        "it contains a user or a password; set the key in its own variable",
    );
    check(&format!("http://{}", "a".repeat(5000)), "it is too long");
}

#[test]
fn a_key_goes_to_another_machine_only_where_nobody_can_read_it() {
    let check = |url, fine: bool| {
        let outcome = read(&[("BASE_URL", url), ("MODEL", "m"), ("API_KEY", "k")]);
        assert_eq!(outcome.is_ok(), fine, "{url}: {outcome:?}");
        if !fine {
            assert_eq!(outcome, Err(SettingsError::KeyInTheClear));
        }
        with_url(url).unwrap();
    };
    check("https://api.example.com", true);
    check("http://localhost:1", true);
    check("http://LOCALHOST:1", true);
    check("http://127.9.9.9", true);
    check("http://[::1]", true);
    check("http://[::ffff:127.0.0.1]", true);
    check("http://192.168.0.2", false);
    check("http://0.0.0.0", false);
    check("http://box", false);
    check("http://localhost.example.com", false);
    check("http://127.0.0.1.example.com", false);
}

#[test]
fn the_time_for_an_answer_is_in_whole_seconds() {
    let read = |value| {
        let variables = [("BASE_URL", "http://box"), ("MODEL", "m"), ("TIMEOUT", value)];
        read(&variables).map(|settings| settings.unwrap().timeout())
    };
    assert_eq!(read(""), Ok(Duration::from_mins(2)));
    assert_eq!(read("1"), Ok(Duration::from_secs(1)));
    assert_eq!(read("3600"), Ok(Duration::from_hours(1)));
    for bad in ["0", "-1", "3601", "1.5", "10s", "99999999999999999999", "ten"] {
        assert_eq!(read(bad), Err(SettingsError::BadTimeout), "{bad}");
    }
}

#[test]
fn names_and_keys_that_no_request_can_carry_are_refused() {
    let with = |model, key| {
        read(&[("BASE_URL", "https://h"), ("MODEL", model), ("API_KEY", key)]).unwrap_err()
    };
    assert_eq!(with("a\nb", "k"), SettingsError::BadModel);
    assert_eq!(with("m", "se\ncret"), SettingsError::BadKey);
    assert_eq!(with("m", &"k".repeat(5000)), SettingsError::BadKey);
}

#[test]
fn the_key_is_never_shown() {
    let shown = |key| {
        let variables = [("BASE_URL", "https://h"), ("MODEL", "m"), ("API_KEY", key)];
        match read(&variables) {
            Ok(settings) => format!("{settings:?}"),
            Err(error) => format!("{error} {error:?}"),
        }
    };
    assert!(shown("secret").contains("hidden"));
    assert!(!shown("secret").contains("secret"));
    assert!(!shown("sec\u{1}ret").contains("ret"), "{}", shown("sec\u{1}ret"));
}
