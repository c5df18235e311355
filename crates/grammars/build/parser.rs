//! A parser without its tables: C for the compiler of the target.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::BuildError;
use crate::cut::{ParserSource, Table};
use crate::dump::DumpedTable;

/// Offset of each unpacked table: in bytes, or for names in pointers.
pub type TableOffsets = Vec<usize>;

/// The source of a function that makes the language, given where its tables and names are and what finds its tokens,
/// and says how many bytes it takes.
pub fn text(
    name: &str,
    parser: &ParserSource,
    dumped: &[DumpedTable],
    offsets: &TableOffsets,
) -> Result<String, BuildError> {
    let mut text = renames(name, &parser.function, &parser.head);
    text.push_str(&parser.head);
    for ((table, dumped), place) in parser.tables.iter().zip(dumped).zip(offsets) {
        let Table { name, kind, .. } = table;
        let pointer = match &table.row {
            Some(row) => format!("{kind} (*)[{row}]"),
            None => format!("{kind} *"),
        };
        if table.is_names() {
            writeln!(text, "#define {name} (names + {place})")?;
            continue;
        }
        writeln!(text, "#define {name} (({pointer})(tables + {place}))")?;
        // The one that dumped and the one that compiles this have to agree on what an element is.
        let element = dumped.element;
        writeln!(text, "typedef char {name}_size[sizeof({kind}) == {element} ? 1 : -1];")?;
    }
    writeln!(
        text,
        "typedef bool (*Lex)(TSLexer *, TSStateId);\n\
         size_t grammars_{name}(TSLanguage *place, const char *tables, const char *const *names, Lex ts_lex, Lex ts_lex_keywords) {{\n\
         \x20 if (place == NULL) return sizeof(TSLanguage);\n\
         \x20 const TSLanguage language = {{\n{}\n  }};\n\
         \x20 *place = language;\n\
         \x20 return sizeof language;\n}}",
        parser.language
    )?;
    Ok(text)
}

/// The source of its scanner, which is at `path` and not changed.
///
/// A scanner that has more to keep than the library has room for keeps nothing. Some count a few bytes too few, and
/// write past the end: so they are told of less room than there is. No real source needs a tenth of it.
pub fn scanner(name: &str, parser: &ParserSource, path: &str, source: &str) -> String {
    let renames = renames(name, &parser.function, source);
    format!(
        "{renames}#include \"tree_sitter/parser.h\"\n\
         #undef TREE_SITTER_SERIALIZATION_BUFFER_SIZE\n\
         #define TREE_SITTER_SERIALIZATION_BUFFER_SIZE 1000\n\
         #include \"{path}\"\n"
    )
}

/// Names of our own for all that others could see, so that a program can have the parser as it was besides: what begins
/// with the name of the `function` that gives the language, and whatever else was left visible.
fn renames(name: &str, function: &str, source: &str) -> String {
    let prefix = format!("{function}_");
    let words = source.split(|c: char| !is_of_name(c)).filter(|word| word.starts_with(&prefix));
    let names: BTreeSet<_> = words.chain(source.lines().filter_map(visible)).collect();
    let lines = names.iter().map(|word| format!("#define {word} grammars_{name}_{word}\n"));
    lines.collect::<Vec<_>>().concat()
}

/// The name that a line defines for others to see: behind its type, and before what makes it a function, an array or a
/// value.
fn visible(line: &str) -> Option<&str> {
    let first = line.split(|c| !is_of_name(c)).next().filter(|word| !word.is_empty())?;
    if matches!(first, "static" | "typedef" | "extern" | "enum" | "struct" | "union") {
        return None;
    }
    let before = line[..line.find(['(', '[', '='])?].trim_end();
    let start = before.rfind(|c| !is_of_name(c))? + 1;
    Some(&before[start..]).filter(|name| !name.is_empty())
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
