//! Which language a file is in.
//!
//! A language is what [`Language`] asks for and nothing else, so that one whose tables are unpacked at first use fits
//! in as well as the ones below, whose tables are linked.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::tags::Tags;
use crate::{casts, depth};

/// A language whose files can be parsed.
pub trait Language: Send + Sync {
    /// As agents see it.
    fn name(&self) -> &'static str;
    /// The tables of its parser.
    fn grammar(&self) -> &tree_sitter::Language;
    /// What its named parts are. Made once, since that takes longer than to parse most files.
    fn tags(&self) -> &Tags;
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

/// A language whose tables are part of the program.
struct Linked {
    name: &'static str,
    comments: Comments,
    tables: &'static Tables,
}

/// What several languages may share.
struct Tables {
    load: fn() -> tree_sitter::Language,
    query: &'static str,
    loaded: OnceLock<(tree_sitter::Language, Tags)>,
}

impl Tables {
    const fn new(load: fn() -> tree_sitter::Language, query: &'static str) -> Self {
        Self { load, query, loaded: OnceLock::new() }
    }

    fn loaded(&self) -> &(tree_sitter::Language, Tags) {
        self.loaded.get_or_init(|| {
            let grammar = (self.load)();
            let tags = Tags::new(&grammar, self.query).expect("a query that was tested");
            (grammar, tags)
        })
    }
}

impl Language for Linked {
    fn name(&self) -> &'static str {
        self.name
    }

    fn grammar(&self) -> &tree_sitter::Language {
        &self.tables.loaded().0
    }

    fn tags(&self) -> &Tags {
        &self.tables.loaded().1
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
    ($($tables:ident = $grammar:path, $query:literal;)*) => {
        $(static $tables: Tables =
            Tables::new(|| $grammar.into(), include_str!(concat!("../queries/", $query, ".scm")));)*
    };
}

tables! {
    RUST_TABLES = tree_sitter_rust::LANGUAGE, "rust";
    PYTHON_TABLES = tree_sitter_python::LANGUAGE, "python";
    GO_TABLES = tree_sitter_go::LANGUAGE, "go";
    JAVA_TABLES = tree_sitter_java::LANGUAGE, "java";
    C_TABLES = tree_sitter_c::LANGUAGE, "c";
    // One grammar for the three, since each is 1.4 MB. What it cannot read are casts written `<T>x`.
    ECMASCRIPT_TABLES = tree_sitter_typescript::LANGUAGE_TSX, "ecmascript";
    JSON_TABLES = tree_sitter_json::LANGUAGE, "json";
    TOML_TABLES = tree_sitter_toml_ng::LANGUAGE, "toml";
    YAML_TABLES = tree_sitter_yaml::LANGUAGE, "yaml";
    HTML_TABLES = tree_sitter_html::LANGUAGE, "html";
    CSS_TABLES = tree_sitter_css::LANGUAGE, "css";
}
