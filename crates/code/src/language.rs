//! Languages: detection by the path and the text of a file, grammars and comments.
//!
//! A language is an implementation of the trait [`Language`]. Its tables are unpacked when it is first used, and freed
//! by [`free_unused`].

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use grammars::{Grammar, PackedGrammar};

use crate::header;
use crate::heredoc;
use crate::tags::Tags;

/// A language whose files can be parsed.
pub trait Language: Send + Sync {
    /// Name that agents see.
    fn name(&self) -> &'static str;
    /// Grammar and patterns of the language. They stay in memory as long as any caller keeps an `Arc` of them.
    fn loaded(&self) -> Arc<LoadedLanguage>;
    fn comments(&self) -> CommentSyntax;
    /// True if the scanner can keep its state for `source`. One that cannot may end the process.
    fn scanner_accepts(&self, _source: &[u8]) -> bool {
        true
    }
}

/// A language whose tables are in memory.
#[derive(Debug)]
pub struct LoadedLanguage {
    pub(crate) grammar: Arc<Grammar>,
    patterns: &'static str,
    tags: OnceLock<Tags>,
}

impl LoadedLanguage {
    /// Patterns that find its named parts. Read when they are first used: a search for syntax errors does not need
    /// them.
    pub fn tags(&self) -> &Tags {
        let tags = || Tags::new(&self.grammar, self.patterns).expect("patterns that were tested");
        self.tags.get_or_init(tags)
    }
}

/// Frees the tables of all languages that are not in use. Returns the number of these languages.
pub fn free_unused() -> usize {
    BUILTIN.iter().filter(|language| language.free_unused()).count()
}

/// Comment syntax of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommentSyntax {
    /// Mark that begins a comment that ends with its line.
    pub line: Option<&'static str>,
    /// Marks that begin and end any other comment.
    pub block: Option<(&'static str, &'static str)>,
    /// Marks that begin a comment that documents the part below it.
    pub doc: &'static [&'static str],
}

const C_LIKE: CommentSyntax =
    CommentSyntax { line: Some("//"), block: Some(("/*", "*/")), doc: &["//", "/*"] };
const HASH: CommentSyntax = CommentSyntax { line: Some("#"), block: None, doc: &["#"] };
/// Many of the other comments are notes to developers, or code that is switched off.
const SLASHES: CommentSyntax =
    CommentSyntax { line: Some("//"), block: Some(("/*", "*/")), doc: &["///", "/**"] };
const PHP: CommentSyntax =
    CommentSyntax { line: Some("//"), block: Some(("/*", "*/")), doc: &["//", "/*", "#"] };
const MARKUP: CommentSyntax =
    CommentSyntax { line: None, block: Some(("<!--", "-->")), doc: &["<!--"] };
const STYLE: CommentSyntax = CommentSyntax { line: None, block: Some(("/*", "*/")), doc: &["/*"] };

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
    Some(if is_header && header::is_cpp(text) { &BUILTIN_CPP } else { language })
}

/// Language of a script, by a first line such as `#!/usr/bin/env python3`.
fn of_first_line(text: &str) -> Option<&'static BuiltinLanguage> {
    let line = text.strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let mut program = words.next()?;
    if program == "env" {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    Some(match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" | "pypy" => &BUILTIN_PYTHON,
        "bash" | "sh" | "dash" | "ksh" | "bats" => &BUILTIN_BASH,
        "node" | "nodejs" => &BUILTIN_JAVASCRIPT,
        "ruby" => &BUILTIN_RUBY,
        "php" => &BUILTIN_PHP,
        _ => return None,
    })
}

fn of_name(name: &str) -> Option<&'static BuiltinLanguage> {
    Some(match name {
        "Cargo.lock" | "Pipfile" | "poetry.lock" | "uv.lock" => &BUILTIN_TOML,
        ".clang-format" | ".clang-tidy" => &BUILTIN_YAML,
        "Gemfile" | "Rakefile" | "Vagrantfile" | "Podfile" | "Brewfile" | "Fastfile"
        | "Guardfile" | "Capfile" | ".irbrc" | ".pryrc" => &BUILTIN_RUBY,
        ".bashrc" | ".bash_profile" | ".bash_login" | ".bash_logout" | ".bash_aliases"
        | ".profile" | "PKGBUILD" | "APKBUILD" => &BUILTIN_BASH,
        _ => return None,
    })
}

fn of_extension(extension: &str) -> Option<&'static BuiltinLanguage> {
    Some(match extension {
        "rs" => &BUILTIN_RUST,
        "py" | "pyi" | "pyw" => &BUILTIN_PYTHON,
        "go" => &BUILTIN_GO,
        "java" => &BUILTIN_JAVA,
        "c" | "h" => &BUILTIN_C,
        "cpp" | "cc" | "cxx" | "c++" | "hpp" | "hh" | "hxx" | "h++" | "ipp" | "tpp" | "inl"
        | "cppm" | "ixx" => &BUILTIN_CPP,
        "cs" | "csx" => &BUILTIN_CSHARP,
        "rb" | "rake" | "gemspec" | "ru" | "podspec" | "rbi" => &BUILTIN_RUBY,
        "php" | "phtml" | "php5" | "php7" | "php8" => &BUILTIN_PHP,
        "sh" | "bash" | "bats" | "ebuild" => &BUILTIN_BASH,
        "kt" | "kts" => &BUILTIN_KOTLIN,
        "swift" => &BUILTIN_SWIFT,
        "js" | "mjs" | "cjs" | "jsx" => &BUILTIN_JAVASCRIPT,
        "ts" | "mts" | "cts" => &BUILTIN_TYPESCRIPT,
        "tsx" => &BUILTIN_TSX,
        "json" | "jsonc" | "webmanifest" => &BUILTIN_JSON,
        "toml" => &BUILTIN_TOML,
        "yaml" | "yml" => &BUILTIN_YAML,
        "html" | "htm" | "xhtml" => &BUILTIN_HTML,
        "css" => &BUILTIN_CSS,
        _ => return None,
    })
}

/// Returns every language, in no particular order.
pub fn all() -> impl Iterator<Item = &'static dyn Language> {
    BUILTIN.iter().map(|language| *language as &dyn Language)
}

/// A language whose parser is part of the program.
struct BuiltinLanguage {
    name: &'static str,
    comments: CommentSyntax,
    packed: &'static PackedGrammar,
    patterns: &'static str,
    loaded: Mutex<Option<Arc<LoadedLanguage>>>,
}

impl BuiltinLanguage {
    /// Frees the tables if they are not in use. A count of one cannot grow meanwhile: only `loaded` clones this `Arc`,
    /// and only under the same lock.
    fn free_unused(&self) -> bool {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.take_if(|loaded| Arc::strong_count(loaded) == 1).is_some()
    }
}

impl Language for BuiltinLanguage {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the tables. A thread that calls this while another one unpacks them waits, and gets the same.
    fn loaded(&self) -> Arc<LoadedLanguage> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_with(|| {
            let grammar = self.packed.unpack();
            Arc::new(LoadedLanguage { grammar, patterns: self.patterns, tags: OnceLock::new() })
        });
        Arc::clone(loaded)
    }

    fn comments(&self) -> CommentSyntax {
        self.comments
    }

    fn scanner_accepts(&self, source: &[u8]) -> bool {
        self.name != "ruby" || heredoc::words_are_short(source)
    }
}

macro_rules! builtin {
    ($($language:ident = $name:literal, $comments:ident, $packed:ident, [$($patterns:literal),*];)*) => {
        $(static $language: BuiltinLanguage = BuiltinLanguage {
            name: $name,
            comments: $comments,
            packed: &grammars::$packed,
            patterns: concat!($(include_str!(concat!("../queries/", $patterns, ".scm"))),*),
            loaded: Mutex::new(None),
        };)*
        static BUILTIN: &[&BuiltinLanguage] = &[$(&$language),*];
    };
}

builtin! {
    BUILTIN_BASH = "bash", HASH, BASH, ["bash"];
    BUILTIN_C = "c", C_LIKE, C, ["c"];
    BUILTIN_CPP = "cpp", C_LIKE, CPP, ["cpp"];
    BUILTIN_CSHARP = "csharp", SLASHES, CSHARP, ["csharp"];
    BUILTIN_CSS = "css", STYLE, CSS, ["css"];
    BUILTIN_GO = "go", C_LIKE, GO, ["go"];
    BUILTIN_HTML = "html", MARKUP, HTML, ["html"];
    BUILTIN_JAVA = "java", C_LIKE, JAVA, ["java"];
    BUILTIN_JAVASCRIPT = "javascript", C_LIKE, JAVASCRIPT, ["ecmascript", "javascript"];
    BUILTIN_JSON = "json", C_LIKE, JSON, ["json"];
    BUILTIN_KOTLIN = "kotlin", C_LIKE, KOTLIN, ["kotlin"];
    BUILTIN_PHP = "php", PHP, PHP, ["php"];
    BUILTIN_PYTHON = "python", HASH, PYTHON, ["python"];
    BUILTIN_RUBY = "ruby", HASH, RUBY, ["ruby"];
    BUILTIN_RUST = "rust", SLASHES, RUST, ["rust"];
    BUILTIN_SWIFT = "swift", SLASHES, SWIFT, ["swift"];
    BUILTIN_TOML = "toml", HASH, TOML, ["toml"];
    BUILTIN_TSX = "tsx", C_LIKE, TSX, ["ecmascript", "typescript"];
    BUILTIN_TYPESCRIPT = "typescript", C_LIKE, TYPESCRIPT, ["ecmascript", "typescript"];
    BUILTIN_YAML = "yaml", HASH, YAML, ["yaml"];
}
