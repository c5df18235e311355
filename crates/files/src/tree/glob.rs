//! Parses a glob in the syntax of `.gitignore`, and matches paths against it.
//!
//! The crates `globset` and `ignore` compile globs to regular expressions: up to 1.5 KB of memory for each byte of text
//! that may be hostile, on a stack as deep as its braces. This matcher keeps the text as tokens. It needs no recursion,
//! and at most as many steps as the glob has bytes times the path.

use std::iter;

/// Longest glob, in bytes.
pub(super) const GLOB_LENGTH_MAX: usize = 1024;
/// Maximum number of globs that the braces of one may expand to.
const ALTERNATIVES_MAX: usize = 256;

/// Reason why a text is not a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GlobSyntaxError {
    #[error("it has more than {GLOB_LENGTH_MAX} bytes")]
    TooLong,
    #[error("its braces expand to more than {ALTERNATIVES_MAX} globs")]
    TooManyAlternatives,
    #[error("a `{{` has no `}}`")]
    OpenBrace,
    #[error("a `}}` has no `{{`")]
    ClosedBrace,
    #[error("a `[` has no `]`")]
    OpenClass,
    #[error("a range ends before it begins")]
    Range,
    #[error("nothing follows the last `\\`")]
    OpenEscape,
}

impl GlobSyntaxError {
    /// True if the text would be a glob if there were no bounds.
    pub fn exceeds_bound(self) -> bool {
        matches!(self, Self::TooLong | Self::TooManyAlternatives)
    }
}

/// A line of an ignore file, or one glob of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    /// True if the glob began with `!`.
    pub is_negated: bool,
    /// True if the glob ended with `/`.
    pub folders_only: bool,
    segments: Box<[Segment]>,
}

/// Part of a glob between two `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of names.
    AnyNames,
    Name(Box<[Token]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(Box<str>),
    /// `?`
    Character,
    /// `*`
    Characters,
    /// `[…]`
    Class {
        is_negated: bool,
        ranges: Box<[(char, char)]>,
    },
}

/// A glob that matches paths by their names alone. Such globs are looked up in a table instead of tried.
pub(super) enum LookupKey<'g> {
    /// `name`
    Name(&'g str),
    /// `*.extension`, with its dot
    Extension(&'g str),
}

impl Glob {
    /// Parses a line without its terminator. `None` if it is blank or a comment.
    pub fn parse(line: &str) -> Result<Option<Self>, GlobSyntaxError> {
        let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if line.len() > GLOB_LENGTH_MAX {
            return Err(GlobSyntaxError::TooLong);
        }
        let (is_negated, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (folders_only, line) = match line.strip_suffix('/') {
            // An escape before the `/` has no effect.
            Some(rest) => (true, rest.strip_suffix('\\').unwrap_or(rest)),
            None => (false, line),
        };
        let mut segments = Vec::new();
        // A glob without a `/` matches names in any folder.
        if !line.contains('/') {
            segments.push(Segment::AnyNames);
        }
        let mut rest = Some(line.strip_prefix('/').unwrap_or(line));
        while let Some(text) = rest {
            let (segment, following) = Segment::parse(text)?;
            if segment != Segment::AnyNames || segments.last() != Some(&Segment::AnyNames) {
                segments.push(segment);
            }
            rest = following;
        }
        // `a/**` matches the contents of a folder, and not the folder.
        if segments.len() > 1 && segments.last() == Some(&Segment::AnyNames) {
            segments.push(Segment::Name([Token::Characters].into()));
        }
        Ok(Some(Self { is_negated, folders_only, segments: segments.into() }))
    }

    /// True if the glob matches a path, which has `/` between its names.
    pub fn matches(&self, path: &str) -> bool {
        if let [Segment::AnyNames, Segment::Name(tokens)] = &*self.segments {
            return name_matches(tokens, name_of(path));
        }
        // Next segment, and rest of the path that it has to match. After a mismatch the last `**` matches one more
        // name: earlier ones need not be tried again.
        let (mut next, mut rest) = (0, Some(path));
        let mut retry = None;
        loop {
            match (self.segments.get(next), rest) {
                (None, None) => return true,
                (Some(Segment::AnyNames), _) => {
                    next += 1;
                    retry = Some((next, rest));
                    continue;
                }
                (Some(Segment::Name(tokens)), Some(path)) => {
                    let (name, following) = first_name(path);
                    if name_matches(tokens, name) {
                        (next, rest) = (next + 1, following);
                        continue;
                    }
                }
                _ => {}
            }
            let Some((after, Some(path))) = retry else { return false };
            (next, rest) = (after, first_name(path).1);
            retry = Some((next, rest));
        }
    }

    pub fn lookup_key(&self) -> Option<LookupKey<'_>> {
        let [Segment::AnyNames, Segment::Name(tokens)] = &*self.segments else { return None };
        match &**tokens {
            [Token::Text(name)] => Some(LookupKey::Name(name)),
            [Token::Characters, Token::Text(end)] if end.rfind('.') == Some(0) => {
                Some(LookupKey::Extension(end))
            }
            _ => None,
        }
    }
}

impl Segment {
    /// Parses up to the next `/`, and returns the text after it.
    fn parse(text: &str) -> Result<(Self, Option<&str>), GlobSyntaxError> {
        let (mut tokens, mut plain) = (Vec::new(), String::new());
        let mut is_any = false;
        let mut rest = text.chars();
        let following = loop {
            let token = match rest.next() {
                None => break None,
                Some('/') => break Some(rest.as_str()),
                Some('*') => {
                    is_any = text.starts_with("**")
                        && matches!(text.as_bytes().get(2), None | Some(b'/'));
                    Token::Characters
                }
                Some('?') => Token::Character,
                Some('[') => {
                    let (class, after) = parse_class(rest.as_str())?;
                    rest = after.chars();
                    class
                }
                Some('\\') => {
                    plain.push(rest.next().ok_or(GlobSyntaxError::OpenEscape)?);
                    continue;
                }
                Some(character) => {
                    plain.push(character);
                    continue;
                }
            };
            if !plain.is_empty() {
                tokens.push(Token::Text(std::mem::take(&mut plain).into()));
            }
            if token != Token::Characters || tokens.last() != Some(&token) {
                tokens.push(token);
            }
        };
        if is_any {
            return Ok((Self::AnyNames, following));
        }
        if !plain.is_empty() {
            tokens.push(Token::Text(plain.into()));
        }
        Ok((Self::Name(tokens.into()), following))
    }
}

/// Parses what follows a `[`, and returns the text after the `]`.
fn parse_class(text: &str) -> Result<(Token, &str), GlobSyntaxError> {
    let mut rest = text.strip_prefix(['!', '^']).unwrap_or(text).chars().peekable();
    let is_negated = rest.clone().count() < text.chars().count();
    let mut ranges = Vec::new();
    loop {
        let first = match rest.next().ok_or(GlobSyntaxError::OpenClass)? {
            ']' if !ranges.is_empty() => break,
            '\\' => rest.next().ok_or(GlobSyntaxError::OpenEscape)?,
            character => character,
        };
        let mut last = first;
        let mut ahead = rest.clone();
        if ahead.next() == Some('-') && ahead.peek().is_some_and(|end| *end != ']') {
            last = match ahead.next() {
                Some('\\') => ahead.next().ok_or(GlobSyntaxError::OpenEscape)?,
                other => other.ok_or(GlobSyntaxError::OpenClass)?,
            };
            rest = ahead;
        }
        if last < first {
            return Err(GlobSyntaxError::Range);
        }
        ranges.push((first, last));
    }
    let behind = rest.map(char::len_utf8).sum::<usize>();
    let class = Token::Class { is_negated, ranges: ranges.into() };
    Ok((class, &text[text.len() - behind..]))
}

/// True if the tokens match a whole name. After a mismatch the last `*` matches one more character.
fn name_matches(tokens: &[Token], name: &str) -> bool {
    let (mut next, mut rest) = (0, name);
    let mut retry = None;
    loop {
        match tokens.get(next) {
            None if rest.is_empty() => return true,
            None => {}
            Some(Token::Characters) => {
                next += 1;
                if next == tokens.len() {
                    return true;
                }
                retry = Some((next, rest));
                continue;
            }
            Some(token) => {
                if let Some(behind) = token.strip(rest) {
                    (next, rest) = (next + 1, behind);
                    continue;
                }
            }
        }
        let Some((after, from)) = retry else { return false };
        let mut from = from.chars();
        if from.next().is_none() {
            return false;
        }
        (next, rest) = (after, from.as_str());
        retry = Some((next, rest));
    }
}

impl Token {
    /// Returns the text without this token, if it begins with it. [`Token::Characters`] has no length of its own.
    fn strip<'t>(&self, text: &'t str) -> Option<&'t str> {
        let (is_negated, ranges) = match self {
            Self::Text(plain) => return text.strip_prefix(&**plain),
            Self::Characters => return None,
            Self::Character => (true, &[][..]),
            Self::Class { is_negated, ranges } => (*is_negated, &**ranges),
        };
        let mut rest = text.chars();
        let character = rest.next()?;
        let is_in = ranges.iter().any(|(first, last)| (first..=last).contains(&&character));
        (is_in != is_negated).then_some(rest.as_str())
    }
}

/// Splits a path into its first name and the rest.
fn first_name(path: &str) -> (&str, Option<&str>) {
    path.split_once('/').map_or((path, None), |(name, rest)| (name, Some(rest)))
}

pub(super) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Expands the braces of a glob: `a{b,c}` to `ab` and `ac`. Ignore files have no braces.
pub(super) fn expand_braces(glob: &str) -> Result<Vec<String>, GlobSyntaxError> {
    if glob.len() > GLOB_LENGTH_MAX {
        return Err(GlobSyntaxError::TooLong);
    }
    let mut pending = vec![glob.to_owned()];
    let mut plain = Vec::new();
    while let Some(glob) = pending.pop() {
        match first_braces(&glob)? {
            None => plain.push(glob),
            Some(Braces { start, commas, end }) => {
                let starts = iter::once(start).chain(commas.iter().copied());
                let ends = commas.iter().copied().chain([end]);
                // The last one pushed is expanded first.
                let mut choices: Vec<_> = starts
                    .zip(ends)
                    .map(|(start, end)| &glob[start + 1..end])
                    .map(|choice| [&glob[..start], choice, &glob[end + 1..]].concat())
                    .collect();
                choices.reverse();
                pending.append(&mut choices);
            }
        }
        if pending.len() + plain.len() > ALTERNATIVES_MAX {
            return Err(GlobSyntaxError::TooManyAlternatives);
        }
    }
    Ok(plain)
}

/// Positions of the first pair of outermost braces, and of the commas in it.
struct Braces {
    start: usize,
    commas: Vec<usize>,
    end: usize,
}

fn first_braces(glob: &str) -> Result<Option<Braces>, GlobSyntaxError> {
    let (mut start, mut commas, mut depth) = (None, Vec::new(), 0_usize);
    let mut at = 0;
    while let Some(byte) = glob.as_bytes().get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => {
                let (_, behind) = parse_class(&glob[at + 1..])?;
                at = glob.len() - behind.len();
                continue;
            }
            b'{' => {
                start = start.or(Some(at));
                depth += 1;
            }
            b',' if depth == 1 => commas.push(at),
            b'}' => {
                depth = depth.checked_sub(1).ok_or(GlobSyntaxError::ClosedBrace)?;
                if let (0, Some(start)) = (depth, start) {
                    return Ok(Some(Braces { start, commas, end: at }));
                }
            }
            _ => {}
        }
        at += 1;
    }
    if start.is_some() { Err(GlobSyntaxError::OpenBrace) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn glob(line: &str) -> Glob {
        Glob::parse(line).unwrap().unwrap()
    }

    #[test]
    fn a_glob_matches_what_git_says() {
        for (line, fitting, others) in [
            ("a", &["a", "b/a", "b/c/a"][..], &["b", "ab", "a/b", "ba"][..]),
            ("/a", &["a"], &["b/a"]),
            ("a/b", &["a/b"], &["c/a/b", "a/c/b", "a", "b"]),
            ("*.c", &["x.c", ".c", "d/x.c"], &["x.cc", "c", "x.c/y"]),
            ("a*c*e", &["ace", "abcde", "acce", "aceace"], &["acd", "aec"]),
            ("*", &["a", "a/b"], &[]),
            ("/*", &["a"], &["a/b"]),
            ("a?c", &["abc", "aéc"], &["ac", "abbc"]),
            ("a/*/b", &["a/x/b"], &["a/b", "a/x/y/b"]),
            ("a/**/b", &["a/b", "a/x/b", "a/x/y/b", "a/b/b"], &["ab", "a/bb", "x/a/b"]),
            ("**/a/b", &["a/b", "x/a/b", "a/a/b"], &["xa/b", "a/x/b"]),
            ("a/**", &["a/x", "a/x/y"], &["a", "b/a/x"]),
            ("**", &["a", "a/b"], &[]),
            ("a/**/**/b", &["a/b", "a/x/b"], &["a"]),
            ("a**b", &["ab", "axb"], &["a/b"]),
            ("**/*x*/**/*y*/z", &["x/y/z", "q/axa/b/y/y/z"], &["y/x/z", "x/y/z/w"]),
            ("[ab]c", &["ac", "bc"], &["cc", "c"]),
            ("[!a-cx]d", &["dd", "éd"], &["ad", "bd", "xd", "d"]),
            ("[^a]", &["b"], &["a"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a-]", &["-", "a"], &["b"]),
            ("[\\]]", &["]"], &["\\"]),
            ("\\#a", &["#a"], &["a"]),
            ("\\!a", &["!a"], &["a"]),
            ("\\*", &["*"], &["a"]),
            ("a\\ ", &["a "], &["a"]),
            ("a  ", &["a"], &["a "]),
            ("{a,b}", &["{a,b}"], &["a"]),
            ("[é-ü]", &["ö"], &["a"]),
        ] {
            let parsed = glob(line);
            let matches = |path: &&&str| parsed.matches(path);
            assert_eq!(fitting.iter().find(|path| !matches(path)), None, "{line}");
            assert_eq!(others.iter().find(matches), None, "{line}");
        }
        assert!(Glob::parse("").unwrap().is_none() && Glob::parse("# a").unwrap().is_none());
        let parsed = glob("!a/");
        assert!(parsed.is_negated && parsed.folders_only && parsed.matches("b/a"));
        assert_eq!(Glob::parse("[a"), Err(GlobSyntaxError::OpenClass));
        assert_eq!(Glob::parse("a\\"), Err(GlobSyntaxError::OpenEscape));
        assert_eq!(Glob::parse("[b-a]"), Err(GlobSyntaxError::Range));
        assert_eq!(Glob::parse(&"a".repeat(GLOB_LENGTH_MAX + 1)), Err(GlobSyntaxError::TooLong));
    }

    #[test]
    fn braces_stand_for_several_globs() {
        for (glob, expected) in [
            ("a", Ok(&["a"][..])),
            ("{a}", Ok(&["a"])),
            ("*.{rs,toml}", Ok(&["*.rs", "*.toml"])),
            ("{a,b{c,d}}e{,f}", Ok(&["ae", "aef", "bce", "bcef", "bde", "bdef"])),
            ("\\{a,b\\}", Ok(&["\\{a,b\\}"])),
            ("[{]a,b[}]", Ok(&["[{]a,b[}]"])),
            ("{a", Err(GlobSyntaxError::OpenBrace)),
            ("a}", Err(GlobSyntaxError::ClosedBrace)),
            ("{a,[}", Err(GlobSyntaxError::OpenClass)),
        ] {
            let expected = expected
                .map(|globs| globs.iter().map(|&glob| glob.into()).collect::<Vec<String>>());
            assert_eq!(expand_braces(glob), expected, "{glob}");
        }
        assert_eq!(expand_braces(&"{a,b}".repeat(8)).unwrap().len(), ALTERNATIVES_MAX);
        let too_many = Err(GlobSyntaxError::TooManyAlternatives);
        assert_eq!(expand_braces(&"{a,b}".repeat(9)), too_many);
        assert_eq!(expand_braces(&format!("{{{}}}", ",".repeat(300))), too_many);
        assert_eq!(expand_braces(&"{".repeat(GLOB_LENGTH_MAX)), Err(GlobSyntaxError::OpenBrace));
        let nested = "{".repeat(500) + &"}".repeat(500);
        assert_eq!(expand_braces(&nested).unwrap(), [""]);
    }

    /// The simplest possible matcher, to compare with.
    fn matches_simply(glob: &[char], path: &[char]) -> bool {
        match (glob, path) {
            ([], []) => true,
            (['*', rest @ ..], _) => {
                matches_simply(rest, path)
                    || matches!(path, [first, behind @ ..] if *first != '/' && matches_simply(glob, behind))
            }
            (['?', glob @ ..], [first, path @ ..]) => *first != '/' && matches_simply(glob, path),
            ([one, glob @ ..], [other, path @ ..]) => one == other && matches_simply(glob, path),
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn stars_take_what_they_must(text in "/[ab*?]{1,4}(/[ab*?]{1,4}){0,2}", path in "[ab]{1,5}(/[ab]{1,5}){0,2}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assume!(!text.split('/').any(|name| name == "**"));
            prop_assert_eq!(glob(&text).matches(&path), matches_simply(&characters(&text[1..]), &characters(&path)));
        }

        #[test]
        fn whatever_is_written_is_a_glob_or_none(text in "[ab/*?\\[\\]!^{},\\\\ é-]{0,20}", path in "[ab/é]{0,9}") {
            for glob in expand_braces(&text).unwrap_or_default() {
                let _ = Glob::parse(&glob).map(|glob| glob.is_some_and(|glob| glob.matches(&path)));
            }
        }
    }
}
