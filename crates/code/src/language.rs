//! Which language a file is in.
//!
//! A language is what [`Language`] asks for and nothing else. Its tables are unpacked when it is first used, and go when
//! they are given back.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use grammars::{Grammar, Packed};

use crate::tags::Tags;
use crate::{casts, depth};

/// A language whose files can be parsed.
pub trait Language: Send + Sync {
    /// As agents see it.
    fn name(&self) -> &'static str;
    /// What it is parsed with: on loan, for as long as anybody has it.
    fn loaded(&self) -> Arc<Loaded>;
    fn comments(&self) -> Comments;
    /// `source` as the grammar can read it: what it does not know is blank, and every other byte where it was.
    fn readable<'a>(&self, source: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
        source
    }
    /// Whether the scanner can keep what `source` is nested in. One that cannot may end the process.
    fn can_nest(&self, _source: &[u8]) -> bool {
        true
    }
}

/// A language that is in use.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) grammar: Arc<Grammar>,
    query: &'static str,
    tags: OnceLock<Tags>,
}

impl Loaded {
    /// What its named parts are. Made when they are first asked for, since that takes longer than to unpack the tables,
    /// or to parse most files.
    pub fn tags(&self) -> &Tags {
        let tags = || Tags::new(&self.grammar, self.query).expect("a query that was tested");
        self.tags.get_or_init(tags)
    }
}

/// Lets go of what nobody has on loan, and returns how many languages that were.
pub fn give_back() -> usize {
    TABLES.iter().filter(|tables| tables.give_back()).count()
}

/// How a language comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comments {
    /// What begins a comment that ends with its line.
    pub line: Option<&'static str>,
    /// What begins and what ends any other.
    pub block: Option<(&'static str, &'static str)>,
    /// What a comment begins with that documents the part below it.
    pub doc: &'static [&'static str],
}

const C_LIKE: Comments =
    Comments { line: Some("//"), block: Some(("/*", "*/")), doc: &["//", "/*"] };
const HASH: Comments = Comments { line: Some("#"), block: None, doc: &["#"] };
/// Of the other comments many are notes to whoever works on the code, or code that is switched off.
const RUST: Comments =
    Comments { line: Some("//"), block: Some(("/*", "*/")), doc: &["///", "/**"] };
const MARKUP: Comments = Comments { line: None, block: Some(("<!--", "-->")), doc: &["<!--"] };
const STYLE: Comments = Comments { line: None, block: Some(("/*", "*/")), doc: &["/*"] };

/// The language of the file at `path`, by what its name ends with, or by the whole name. `None`: no grammar is known.
pub fn of_path(path: &str) -> Option<&'static dyn Language> {
    let name = path.rsplit(['/', '\\']).next()?;
    let language: &'static Linked = match name {
        "Cargo.lock" | "Pipfile" | "poetry.lock" | "uv.lock" => &LINKED_TOML,
        ".clang-format" | ".clang-tidy" => &LINKED_YAML,
        _ => of_extension(&name.rsplit_once('.')?.1.to_ascii_lowercase())?,
    };
    Some(language)
}

fn of_extension(extension: &str) -> Option<&'static Linked> {
    Some(match extension {
        "rs" => &LINKED_RUST,
        "py" | "pyi" | "pyw" => &LINKED_PYTHON,
        "go" => &LINKED_GO,
        "java" => &LINKED_JAVA,
        "c" | "h" => &LINKED_C,
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

/// Every language there is, in no particular order.
pub fn all() -> impl Iterator<Item = &'static dyn Language> {
    let linked: [&'static dyn Language; 13] = [
        &LINKED_RUST,
        &LINKED_PYTHON,
        &LINKED_GO,
        &LINKED_JAVA,
        &LINKED_C,
        &LINKED_JAVASCRIPT,
        &LINKED_TYPESCRIPT,
        &LINKED_TSX,
        &LINKED_JSON,
        &LINKED_TOML,
        &LINKED_YAML,
        &LINKED_HTML,
        &LINKED_CSS,
    ];
    linked.into_iter()
}

/// A language whose parser is part of the program.
struct Linked {
    name: &'static str,
    comments: Comments,
    tables: &'static Tables,
}

/// What several languages may share.
struct Tables {
    packed: &'static Packed,
    query: &'static str,
    loaded: Mutex<Option<Arc<Loaded>>>,
}

impl Tables {
    const fn new(packed: &'static Packed, query: &'static str) -> Self {
        Self { packed, query, loaded: Mutex::new(None) }
    }

    /// Who comes while another loads it waits, and has the same.
    fn loaded(&self) -> Arc<Loaded> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_with(|| {
            let grammar = self.packed.unpack();
            Arc::new(Loaded { grammar, query: self.query, tags: OnceLock::new() })
        });
        Arc::clone(loaded)
    }

    /// Only here another share is made, and only while nobody else has the lock: what is ours alone stays so.
    fn give_back(&self) -> bool {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.take_if(|loaded| Arc::strong_count(loaded) == 1).is_some()
    }
}

impl Language for Linked {
    fn name(&self) -> &'static str {
        self.name
    }

    fn loaded(&self) -> Arc<Loaded> {
        self.tables.loaded()
    }

    fn comments(&self) -> Comments {
        self.comments
    }

    fn readable<'a>(&self, source: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
        if self.name == "typescript" { casts::blanked(source) } else { source }
    }

    fn can_nest(&self, source: &[u8]) -> bool {
        match self.name {
            "python" => depth::python_is_shallow(source),
            "yaml" => depth::yaml_is_shallow(source),
            _ => true,
        }
    }
}

macro_rules! linked {
    ($($language:ident = $name:literal, $comments:ident, $tables:ident;)*) => {
        $(static $language: Linked = Linked { name: $name, comments: $comments, tables: &$tables };)*
    };
}

linked! {
    LINKED_RUST = "rust", RUST, RUST_TABLES;
    LINKED_PYTHON = "python", HASH, PYTHON_TABLES;
    LINKED_GO = "go", C_LIKE, GO_TABLES;
    LINKED_JAVA = "java", C_LIKE, JAVA_TABLES;
    LINKED_C = "c", C_LIKE, C_TABLES;
    LINKED_JAVASCRIPT = "javascript", C_LIKE, ECMASCRIPT_TABLES;
    LINKED_TYPESCRIPT = "typescript", C_LIKE, ECMASCRIPT_TABLES;
    LINKED_TSX = "tsx", C_LIKE, ECMASCRIPT_TABLES;
    LINKED_JSON = "json", C_LIKE, JSON_TABLES;
    LINKED_TOML = "toml", HASH, TOML_TABLES;
    LINKED_YAML = "yaml", HASH, YAML_TABLES;
    LINKED_HTML = "html", MARKUP, HTML_TABLES;
    LINKED_CSS = "css", STYLE, CSS_TABLES;
}

macro_rules! tables {
    ($($tables:ident = $packed:ident, $query:literal;)*) => {
        $(static $tables: Tables =
            Tables::new(&grammars::$packed, include_str!(concat!("../queries/", $query, ".scm")));)*
        static TABLES: &[&Tables] = &[$(&$tables),*];
    };
}

tables! {
    RUST_TABLES = RUST, "rust";
    PYTHON_TABLES = PYTHON, "python";
    GO_TABLES = GO, "go";
    JAVA_TABLES = JAVA, "java";
    C_TABLES = C, "c";
    // One grammar for the three. What it cannot read are casts written `<T>x`.
    ECMASCRIPT_TABLES = TSX, "ecmascript";
    JSON_TABLES = JSON, "json";
    TOML_TABLES = TOML, "toml";
    YAML_TABLES = YAML, "yaml";
    HTML_TABLES = HTML, "html";
    CSS_TABLES = CSS, "css";
}
