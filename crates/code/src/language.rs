//! Languages: detection by the path and the text of a file, grammars and comments.
//!
//! A language is an implementation of the trait [`Language`]. Its tables are unpacked when it is first used, and freed
//! by [`give_back`].

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use grammars::{Grammar, Packed};

use crate::header;
use crate::heredoc;
use crate::tags::Tags;

/// A language whose files can be parsed.
pub trait Language: Send + Sync {
    /// Name that agents see.
    fn name(&self) -> &'static str;
    /// Grammar and patterns of the language. They stay in memory as long as any caller keeps an `Arc` of them.
    fn loaded(&self) -> Arc<Loaded>;
    fn comments(&self) -> Comments;
    /// True if the scanner can keep its state for `source`. One that cannot may end the process.
    fn can_keep(&self, _source: &[u8]) -> bool {
        true
    }
}

/// A language whose tables are in memory.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) grammar: Arc<Grammar>,
    patterns: &'static str,
    tags: OnceLock<Tags>,
}

impl Loaded {
    /// Patterns that find its named parts. Read when they are first used: a search for syntax errors does not need
    /// them.
    pub fn tags(&self) -> &Tags {
        let tags = || Tags::new(&self.grammar, self.patterns).expect("patterns that were tested");
        self.tags.get_or_init(tags)
    }
}

/// Frees the tables of all languages that are not in use. Returns the number of these languages.
pub fn give_back() -> usize {
    LINKED.iter().filter(|language| language.give_back()).count()
}

/// Comment syntax of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comments {
    /// Mark that begins a comment that ends with its line.
    pub line: Option<&'static str>,
    /// Marks that begin and end any other comment.
    pub block: Option<(&'static str, &'static str)>,
    /// Marks that begin a comment that documents the part below it.
    pub doc: &'static [&'static str],
}

const C_LIKE: Comments =
    Comments { line: Some("//"), block: Some(("/*", "*/")), doc: &["//", "/*"] };
const HASH: Comments = Comments { line: Some("#"), block: None, doc: &["#"] };
/// Many of the other comments are notes to developers, or code that is switched off.
const SLASHES: Comments =
    Comments { line: Some("//"), block: Some(("/*", "*/")), doc: &["///", "/**"] };
const PHP: Comments =
    Comments { line: Some("//"), block: Some(("/*", "*/")), doc: &["//", "/*", "#"] };
const MARKUP: Comments = Comments { line: None, block: Some(("<!--", "-->")), doc: &["<!--"] };
const STYLE: Comments = Comments { line: None, block: Some(("/*", "*/")), doc: &["/*"] };

/// Language of the file at `path`, by its extension or its whole name. `None` if there is no grammar for it.
pub fn of_path(path: &str) -> Option<&'static dyn Language> {
    let name = path.rsplit(['/', '\\']).next()?;
    let language = of_name(name).or_else(|| {
        let (_, extension) = name.rsplit_once('.')?;
        of_extension(&extension.to_ascii_lowercase())
    })?;
    Some(language)
}

/// Language of a file whose `text` is known. A header is C unless it plainly has syntax that only C++ has. For a name
/// without an extension the first line may name the interpreter.
pub fn of(path: &str, text: &str) -> Option<&'static dyn Language> {
    let Some(language) = of_path(path) else {
        let name = path.rsplit(['/', '\\']).next()?;
        return if name.contains('.') { None } else { Some(of_first_line(text)?) };
    };
    let is_header = language.name() == "c" && path.ends_with(['h', 'H']);
    Some(if is_header && header::is_cpp(text) { &LINKED_CPP } else { language })
}

/// Language of a script, by a first line such as `#!/usr/bin/env python3`.
fn of_first_line(text: &str) -> Option<&'static Linked> {
    let line = text.strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let mut program = words.next()?;
    if program == "env" {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    Some(match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" | "pypy" => &LINKED_PYTHON,
        "bash" | "sh" | "dash" | "ksh" | "bats" => &LINKED_BASH,
        "node" | "nodejs" => &LINKED_JAVASCRIPT,
        "ruby" => &LINKED_RUBY,
        "php" => &LINKED_PHP,
        _ => return None,
    })
}

fn of_name(name: &str) -> Option<&'static Linked> {
    Some(match name {
        "Cargo.lock" | "Pipfile" | "poetry.lock" | "uv.lock" => &LINKED_TOML,
        ".clang-format" | ".clang-tidy" => &LINKED_YAML,
        "Gemfile" | "Rakefile" | "Vagrantfile" | "Podfile" | "Brewfile" | "Fastfile"
        | "Guardfile" | "Capfile" | ".irbrc" | ".pryrc" => &LINKED_RUBY,
        ".bashrc" | ".bash_profile" | ".bash_login" | ".bash_logout" | ".bash_aliases"
        | ".profile" | "PKGBUILD" | "APKBUILD" => &LINKED_BASH,
        _ => return None,
    })
}

fn of_extension(extension: &str) -> Option<&'static Linked> {
    Some(match extension {
        "rs" => &LINKED_RUST,
        "py" | "pyi" | "pyw" => &LINKED_PYTHON,
        "go" => &LINKED_GO,
        "java" => &LINKED_JAVA,
        "c" | "h" => &LINKED_C,
        "cpp" | "cc" | "cxx" | "c++" | "hpp" | "hh" | "hxx" | "h++" | "ipp" | "tpp" | "inl"
        | "cppm" | "ixx" => &LINKED_CPP,
        "cs" | "csx" => &LINKED_CSHARP,
        "rb" | "rake" | "gemspec" | "ru" | "podspec" | "rbi" => &LINKED_RUBY,
        "php" | "phtml" | "php5" | "php7" | "php8" => &LINKED_PHP,
        "sh" | "bash" | "bats" | "ebuild" => &LINKED_BASH,
        "kt" | "kts" => &LINKED_KOTLIN,
        "swift" => &LINKED_SWIFT,
        "js" | "mjs" | "cjs" | "jsx" => &LINKED_JAVASCRIPT,
        "ts" | "mts" | "cts" => &LINKED_TYPESCRIPT,
        "tsx" => &LINKED_TSX,
        "json" | "jsonc" | "webmanifest" => &LINKED_JSON,
        "toml" => &LINKED_TOML,
        "yaml" | "yml" => &LINKED_YAML,
        "html" | "htm" | "xhtml" => &LINKED_HTML,
        "css" => &LINKED_CSS,
        _ => return None,
    })
}

/// Returns every language, in no particular order.
pub fn all() -> impl Iterator<Item = &'static dyn Language> {
    LINKED.iter().map(|language| *language as &dyn Language)
}

/// A language whose parser is part of the program.
struct Linked {
    name: &'static str,
    comments: Comments,
    packed: &'static Packed,
    patterns: &'static str,
    loaded: Mutex<Option<Arc<Loaded>>>,
}

impl Linked {
    /// Frees the tables if they are not in use. A count of one cannot grow meanwhile: only `loaded` clones this `Arc`,
    /// and only under the same lock.
    fn give_back(&self) -> bool {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.take_if(|loaded| Arc::strong_count(loaded) == 1).is_some()
    }
}

impl Language for Linked {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the tables. A thread that calls this while another one unpacks them waits, and gets the same.
    fn loaded(&self) -> Arc<Loaded> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_with(|| {
            let grammar = self.packed.unpack();
            Arc::new(Loaded { grammar, patterns: self.patterns, tags: OnceLock::new() })
        });
        Arc::clone(loaded)
    }

    fn comments(&self) -> Comments {
        self.comments
    }

    fn can_keep(&self, source: &[u8]) -> bool {
        self.name != "ruby" || heredoc::words_are_short(source)
    }
}

macro_rules! linked {
    ($($language:ident = $name:literal, $comments:ident, $packed:ident, [$($patterns:literal),*];)*) => {
        $(static $language: Linked = Linked {
            name: $name,
            comments: $comments,
            packed: &grammars::$packed,
            patterns: concat!($(include_str!(concat!("../queries/", $patterns, ".scm"))),*),
            loaded: Mutex::new(None),
        };)*
        static LINKED: &[&Linked] = &[$(&$language),*];
    };
}

linked! {
    LINKED_BASH = "bash", HASH, BASH, ["bash"];
    LINKED_C = "c", C_LIKE, C, ["c"];
    LINKED_CPP = "cpp", C_LIKE, CPP, ["cpp"];
    LINKED_CSHARP = "csharp", SLASHES, CSHARP, ["csharp"];
    LINKED_CSS = "css", STYLE, CSS, ["css"];
    LINKED_GO = "go", C_LIKE, GO, ["go"];
    LINKED_HTML = "html", MARKUP, HTML, ["html"];
    LINKED_JAVA = "java", C_LIKE, JAVA, ["java"];
    LINKED_JAVASCRIPT = "javascript", C_LIKE, JAVASCRIPT, ["ecmascript", "javascript"];
    LINKED_JSON = "json", C_LIKE, JSON, ["json"];
    LINKED_KOTLIN = "kotlin", C_LIKE, KOTLIN, ["kotlin"];
    LINKED_PHP = "php", PHP, PHP, ["php"];
    LINKED_PYTHON = "python", HASH, PYTHON, ["python"];
    LINKED_RUBY = "ruby", HASH, RUBY, ["ruby"];
    LINKED_RUST = "rust", SLASHES, RUST, ["rust"];
    LINKED_SWIFT = "swift", SLASHES, SWIFT, ["swift"];
    LINKED_TOML = "toml", HASH, TOML, ["toml"];
    LINKED_TSX = "tsx", C_LIKE, TSX, ["ecmascript", "typescript"];
    LINKED_TYPESCRIPT = "typescript", C_LIKE, TYPESCRIPT, ["ecmascript", "typescript"];
    LINKED_YAML = "yaml", HASH, YAML, ["yaml"];
}
