//! A symbol that is searched for: a name, with the names around it.

use memchr::memmem;

use crate::language;
use crate::outline::Part;
use crate::rank::definition;
use crate::words::is_identifier;

/// Most bytes of a name that can be requested.
pub const SYMBOL_BYTES_MAX: usize = 256;

/// Names of files that stand for their folder.
const INDEX_NAMES: &[&str] = &["__init__", "index", "lib", "main", "mod"];
/// Names in a path that do not say where it leads.
const RELATIVE_NAMES: &[&str] = &["crate", "self", "super", "this"];

/// Rule by which a name matches the requested one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NameMatching {
    #[default]
    Exact,
    /// Begins with it, in lower or upper case.
    Prefix,
    /// Contains it, in lower or upper case.
    Substring,
}

/// A symbol: `name`, `Type/method`, `Type::method` or `Type.method`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Text of the request.
    pub given: String,
    pub matching: NameMatching,
    name: String,
    /// The names around it, the outermost first.
    scope: Vec<String>,
}

impl Symbol {
    /// Parses a symbol. `None` if there is no name in it, or it is too long.
    pub fn parse(given: &str, matching: NameMatching) -> Option<Self> {
        if given.len() > SYMBOL_BYTES_MAX {
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        let given_names = without_brackets(given);
        let mut steps = given_names.split(['/', '#']).peekable();
        while let Some(step) = steps.next() {
            // The name of a file is followed by another step.
            let is_file = steps.peek().is_some() && language::of_path(step).is_some();
            let step = if is_file { step.split('.').next().unwrap_or_default() } else { step };
            let parts = step.split(['.', ':']).map(str::trim).filter(|name| !name.is_empty());
            names.extend(parts.map(str::to_owned));
        }
        names.retain(|name| !RELATIVE_NAMES.contains(&name.as_str()));
        let name = names.pop().filter(|name| !name.contains(char::is_whitespace))?;
        Some(Self { given: given.to_owned(), matching, name, scope: names })
    }

    /// The name alone, without those around it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compares a part of the file at `path` with the symbol. `None` if its name does not match.
    pub(super) fn match_part(&self, part: &Part, path: &str) -> Option<SymbolMatch> {
        let is_like = match self.matching {
            NameMatching::Exact => part.name == self.name,
            NameMatching::Prefix => {
                let start = part.name.as_bytes().get(..self.name.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(self.name.as_bytes()))
            }
            NameMatching::Substring => {
                find_name(part.name.as_bytes(), &self.name, CaseRule::IgnoreAsciiCase)
                    .next()
                    .is_some()
            }
        };
        let fit = if self.is_in_scope(part, path) {
            SymbolMatch::Qualified
        } else {
            SymbolMatch::NameOnly
        };
        is_like.then_some(fit)
    }

    /// True if the names around the symbol are among those of the part, from the innermost on, and then of its file and
    /// folders.
    fn is_in_scope(&self, part: &Part, path: &str) -> bool {
        let path = path.rsplit_once('.').map_or(path, |(path, _)| path);
        let folders = path.rsplit('/').filter(|name| !INDEX_NAMES.contains(name));
        let mut actual = part.scope.iter().rev().map(String::as_str).chain(folders);
        self.scope.iter().rev().all(|name| actual.by_ref().any(|actual| actual == name))
    }

    /// True if the names around the symbol are in a text or in its path.
    pub(super) fn has_scope(&self, text: &[u8], path: &str) -> bool {
        let is_there = |name: &String| {
            memmem::find(text, name.as_bytes()).is_some() || path.contains(name.as_str())
        };
        self.scope.iter().all(is_there)
    }

    /// Similarity of the name of a part and the requested one, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "lengths of names")]
    pub(super) fn name_similarity(&self, part: &Part) -> f64 {
        self.name.len() as f64 / part.name.len().max(1) as f64
    }

    /// Returns how often the name is in a text, and true if it seems to be defined there. Exact ones are whole words.
    pub(super) fn count_in(&self, text: &[u8]) -> (u32, bool) {
        let case = match self.matching {
            NameMatching::Exact => CaseRule::Exact,
            NameMatching::Prefix | NameMatching::Substring => CaseRule::IgnoreAsciiCase,
        };
        let is_free = |at: usize| {
            let end = at + self.name.len();
            let before = at.checked_sub(1).is_some_and(|before| is_identifier(text[before]));
            let behind = text.get(end).is_some_and(|byte| is_identifier(*byte));
            match self.matching {
                NameMatching::Exact => !before && !behind,
                NameMatching::Prefix => !before,
                NameMatching::Substring => true,
            }
        };
        let (mut count, mut defines) = (0_u32, false);
        for at in find_name(text, &self.name, case).filter(|at| is_free(*at)) {
            count = count.saturating_add(1);
            defines = defines || definition::defines(text, at, at + self.name.len());
        }
        (count, defines)
    }
}

/// Result of comparing a part with a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolMatch {
    /// The names around it match as well.
    Qualified,
    NameOnly,
}

/// Removes brackets: `(*Type).method()` becomes `Type.method`, `Type<T>` becomes `Type`.
fn without_brackets(given: &str) -> String {
    let mut depth = 0_usize;
    let mut rest = String::new();
    for c in given.chars() {
        match c {
            '<' | '[' => depth += 1,
            '>' | ']' => depth = depth.saturating_sub(1),
            '(' | ')' | '*' | '&' => {}
            c if depth == 0 => rest.push(c),
            _ => {}
        }
    }
    rest
}

/// Rule for comparing letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaseRule {
    Exact,
    /// Lower and upper case of ASCII letters are the same.
    IgnoreAsciiCase,
}

/// Positions of `name` in `text`.
fn find_name<'t>(
    text: &'t [u8],
    name: &'t str,
    case: CaseRule,
) -> Box<dyn Iterator<Item = usize> + 't> {
    if case == CaseRule::Exact {
        return Box::new(memmem::find_iter(text, name));
    }
    let name = name.as_bytes();
    let Some(first) = name.first() else { return Box::new(std::iter::empty()) };
    let (small, capital) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let starts = memchr::memchr2_iter(small, capital, text);
    let fits = move |at: &usize| {
        text.get(*at..*at + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
    };
    Box::new(starts.filter(fits))
}

/// Returns the identifiers in a query: tokens that are written as no word of a language is. A query of one word
/// is an identifier.
pub(super) fn identifiers(query: &str) -> Vec<Symbol> {
    /// Most identifiers of a query; with more it is a text.
    const IDENTIFIERS_MAX: usize = 8;
    let tokens: Vec<&str> = query
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '`' | '"' | '\'' | '(' | ')'))
        .map(|token| token.trim_matches(|c: char| matches!(c, '.' | ':' | '?' | '!' | '/')))
        .filter(|token| !token.is_empty())
        .collect();
    let alone = tokens.len() == 1;
    let named = tokens.into_iter().filter(|token| alone || is_identifier_like(token));
    let mut symbols: Vec<Symbol> = Vec::new();
    for symbol in named.filter_map(|token| Symbol::parse(token, NameMatching::Exact)) {
        let is_name = symbol.name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
        if is_name && !symbols.contains(&symbol) && symbols.len() < IDENTIFIERS_MAX {
            symbols.push(symbol);
        }
    }
    symbols
}

/// True for `snake_case`, `camelCase`, `Type::method` and `HTTPServer`, false for `GET` and `don't`.
fn is_identifier_like(token: &str) -> bool {
    let has_joint = token.trim_matches('_').contains('_') || token.contains("::");
    let mut pairs = token.chars().zip(token.chars().skip(1));
    let turns = pairs.any(|(a, b)| (a.is_lowercase() || a.is_ascii_digit()) && b.is_uppercase());
    let capitals = token.chars().take_while(|c| c.is_uppercase()).count();
    let has_capitals = capitals > 1 && token.chars().any(char::is_lowercase);
    has_joint || turns || has_capitals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_told_from_words() {
        let check = |query: &str, expected: &[&str]| {
            let found: Vec<String> =
                identifiers(query).into_iter().map(|symbol| symbol.given).collect();
            assert_eq!(found, expected, "{query}");
        };
        check("how does the walker stop?", &[]);
        check("walk", &["walk"]);
        check("where is walk_parallel called", &["walk_parallel"]);
        check("storeToRefs and HTTPServer.run()", &["storeToRefs", "HTTPServer.run"]);
        check("Walker::run GET don't", &["Walker::run"]);
        check("", &[]);
    }

    #[test]
    fn names_stand_where_they_are_asked_for() {
        let check = |given: &str, matching, text: &str, expected: u32| {
            let symbol = Symbol::parse(given, matching).expect("a name");
            assert_eq!(symbol.count_in(text.as_bytes()).0, expected, "{given} in {text}");
        };
        check("run", NameMatching::Exact, "run(); rerun(); run_all(); a.run", 2);
        check("run", NameMatching::Prefix, "run(); rerun(); run_all(); Runner", 3);
        check("run", NameMatching::Substring, "run(); rerun(); run_all(); Runner", 4);
        check("Type::run", NameMatching::Exact, "run", 1);
        check("é", NameMatching::Exact, "é éa", 1);
    }

    #[test]
    fn names_are_read_as_people_write_them() {
        let check = |given: &str, scope: &[&str], name: &str| {
            let symbol = Symbol::parse(given, NameMatching::Exact).expect("a name");
            assert_eq!(
                (symbol.scope, symbol.name),
                (scope.iter().map(|s| (*s).to_owned()).collect(), name.into()),
                "{given}"
            );
        };
        check("run", &[], "run");
        check("Walker/run", &["Walker"], "run");
        check("Walker::run()", &["Walker"], "run");
        check("crate::walk::Walker", &["walk"], "Walker");
        check("(*Context).JSON", &["Context"], "JSON");
        check("TypeAdapter<T>", &[], "TypeAdapter");
        check("restore.ts/restoreElements", &["restore"], "restoreElements");
        check("src/flask/app.py/Flask", &["src", "flask", "app"], "Flask");
        check("gin.Context", &["gin"], "Context");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for given in ["", "  ", "::", "two words", &"x".repeat(SYMBOL_BYTES_MAX + 1)] {
            assert_eq!(Symbol::parse(given, NameMatching::Exact), None, "{given}");
        }
    }
}
