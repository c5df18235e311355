//! `parser.c`, cut into its tables and the rest.
//!
//! The files are generated, always in the same form: a definition begins and ends at the beginning of a line.

use crate::BuildError;

/// Start of a function that finds tokens, after its name.
const LEXER: &str = "(TSLexer *lexer, TSStateId state) {";

/// The parts of a `parser.c`.
pub struct ParserSource {
    /// Constants and enumerations that tables use.
    pub head: String,
    pub tables: Vec<Table>,
    /// The functions that find tokens, with what only they need.
    pub lexers: String,
    /// The fields of the language: the text between its braces.
    pub language: String,
    /// The name of the function that gives the language.
    pub function: String,
}

/// A constant array.
pub struct Table {
    pub name: String,
    /// Type of an element, with its qualifiers.
    pub kind: String,
    /// The length of each row, if there are rows.
    pub row: Option<String>,
    /// Its definition in C.
    pub text: String,
}

impl ParserSource {
    /// The names of the functions that find tokens: of all, and of words only.
    pub fn lexers(&self) -> impl Iterator<Item = &str> {
        let lines = self.lexers.lines();
        lines.filter_map(|line| line.strip_prefix("static bool ")?.strip_suffix(LEXER))
    }
}

impl Table {
    /// True if its elements are names, which are pointers.
    pub fn is_names(&self) -> bool {
        self.kind.contains('*')
    }

    fn read(line: &str) -> Option<Self> {
        let (kind, rest) = line.strip_prefix("static ")?.split_once("ts_")?;
        let (name, lengths) = rest.strip_suffix(" = {")?.split_once('[')?;
        let row = lengths.split_once("][").map(|(_, row)| row.trim_end_matches(']').to_owned());
        let kind = kind.trim().to_owned();
        kind.starts_with("const ").then(|| Self {
            name: format!("ts_{name}"),
            kind,
            row,
            text: String::new(),
        })
    }
}

enum FileSection {
    Nothing,
    Table(Table),
    /// A function or an array that tokens are found with.
    Lexer,
    Language,
}

pub fn cut(source: &str) -> Result<ParserSource, BuildError> {
    let (mut head, mut lexers, mut language) = (String::new(), String::new(), String::new());
    let (mut tables, mut function) = (Vec::new(), None);
    let mut inside = FileSection::Nothing;
    for line in source.lines() {
        if matches!(inside, FileSection::Nothing) {
            inside = begun(line);
            if let Some(name) = language_function(line) {
                function = Some(name.to_owned());
            }
        }
        let is_end = matches!(line, "}" | "};");
        let text = match &mut inside {
            // It says that large tables take long to optimize; they are gone.
            FileSection::Nothing if line.starts_with("#pragma") && line.contains("optimize") => {
                continue;
            }
            FileSection::Nothing => &mut head,
            FileSection::Table(table) => &mut table.text,
            FileSection::Lexer => &mut lexers,
            FileSection::Language => &mut language,
        };
        text.push_str(line);
        text.push('\n');
        if is_end
            && let FileSection::Table(table) = std::mem::replace(&mut inside, FileSection::Nothing)
        {
            tables.push(table);
        }
    }
    let function = function.ok_or("no function that gives the language")?;
    if !matches!(inside, FileSection::Nothing) || tables.is_empty() {
        return Err("it is not of the form that is known".into());
    }
    let (_, fields) = language.split_once("language = {\n").ok_or("no fields of the language")?;
    let (fields, _) = fields.split_once("\n  };\n").ok_or("no end of the language")?;
    Ok(ParserSource { head, tables, lexers, language: fields.to_owned(), function })
}

fn begun(line: &str) -> FileSection {
    if let Some(table) = Table::read(line) {
        FileSection::Table(table)
    } else if language_function(line).is_some() {
        FileSection::Language
    } else if line.starts_with("static ") && line.ends_with('{') {
        FileSection::Lexer
    } else {
        FileSection::Nothing
    }
}

/// The name, if this line begins the function.
fn language_function(line: &str) -> Option<&str> {
    line.strip_prefix("TS_PUBLIC const TSLanguage *")?.strip_suffix("(void) {")
}
