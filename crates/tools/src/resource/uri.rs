//! Converts absolute paths to `file:` URIs (RFC 8089) and back.

use std::fmt::Write as _;

use crate::ArgumentError;

const SCHEME: &str = "file://";
const SHAPE: &str = "a URI is `file://` and the absolute path of a file, percent-encoded";

/// Returns the URI of an absolute path.
pub fn of(path: &str) -> String {
    let mut uri = String::from(SCHEME);
    if !path.starts_with('/') {
        uri.push('/'); // before a drive
    }
    for byte in path.bytes() {
        let byte = if cfg!(windows) && byte == b'\\' { b'/' } else { byte };
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Returns the absolute path that a URI stands for. It is decoded once, and then is a path like any other: all checks
/// of the path come after this.
pub fn path_of(uri: &str) -> Result<String, ArgumentError> {
    let scheme = uri.get(..SCHEME.len()).filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
    let Some(scheme) = scheme else {
        return Err(ArgumentError::new("Not a file URI", SHAPE));
    };
    let rest = &uri[scheme.len()..];
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err(ArgumentError::new(
            "A file URI of another host",
            "the path begins with the third `/`: `file:///folder/file.txt`",
        ));
    }
    if path.is_empty() {
        return Err(ArgumentError::new("A file URI without a path", SHAPE));
    }
    if path.contains(['?', '#']) {
        return Err(ArgumentError::new(
            "A file URI has no query and no fragment",
            "in the name of a file, `?` is written %3F and `#` is written %23",
        ));
    }
    let path = decode(path)?;
    // `/C:/folder` names a drive on Windows.
    let drive = path.strip_prefix('/').filter(|_| cfg!(windows) && path.get(2..3) == Some(":"));
    Ok(drive.map(String::from).unwrap_or(path))
}

fn decode(text: &str) -> Result<String, ArgumentError> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| {
            ArgumentError::new(
                "A `%` in the URI is not followed by two hex digits",
                "a `%` in the name of a file is written %25",
            )
        })?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes)
        .map_err(|_| ArgumentError::new("The URI does not decode to UTF-8", "names must be UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        let check = |path: &str, uri: &str| {
            assert_eq!(of(path), uri);
            #[cfg(not(windows))]
            assert_eq!(path_of(uri).as_deref(), Ok(path));
        };
        check("/a/b.txt", "file:///a/b.txt");
        check("/", "file:///");
        check("/a b/ä#?%25.c~d-e_f", "file:///a%20b/%C3%A4%23%3F%2525.c~d-e_f");
        check("/x:y@z!$&'()*+,;=[]", "file:///x:y%40z%21%24%26%27%28%29%2A%2B%2C%3B%3D%5B%5D");
        check("/\u{7f}\n\"<>^`{|}", "file:///%7F%0A%22%3C%3E%5E%60%7B%7C%7D");
        assert_eq!(of("C:/a"), "file:///C:/a");
    }

    #[test]
    #[cfg(not(windows))]
    fn uris_become_paths() {
        let check = |uri: &str, path: &str| assert_eq!(path_of(uri).as_deref(), Ok(path), "{uri}");
        check("file://localhost/a", "/a");
        check("FILE://LocalHost/a", "/a");
        check("file:///%61%2fb", "/a/b");
        check("file:///%2e%2E/a", "/../a");
        check("file:///%252e%00", "/%2e\0");
        check("file:////a//b/", "//a//b/");
        check("file:///ä b", "/ä b");
    }

    #[test]
    fn what_is_no_file_uri_is_told_what_would_be() {
        let check = |uri: &str, expected: &str| {
            let error = path_of(uri).expect_err(uri);
            assert_eq!(error.message, expected, "{uri}");
            assert!(error.hint.is_some(), "{uri}");
        };
        for uri in ["", "a.txt", "/a", "file", "file:", "file:/a", "http://a/b", "fileé//a", "x:/a"]
        {
            check(uri, "Not a file URI");
        }
        check("file://server/a", "A file URI of another host");
        check("file://a.txt", "A file URI of another host");
        check("file://localhost:80/a", "A file URI of another host");
        check("file://", "A file URI without a path");
        check("file://localhost", "A file URI without a path");
        check("file:///a?b", "A file URI has no query and no fragment");
        check("file:///a#", "A file URI has no query and no fragment");
        for uri in ["file:///%", "file:///%4", "file:///%4g", "file:///%+4", "file:///%é4"] {
            check(uri, "A `%` in the URI is not followed by two hex digits");
        }
        check("file:///%ff", "The URI does not decode to UTF-8");
        check("file:///%C3/%A4", "The URI does not decode to UTF-8");
    }
}
