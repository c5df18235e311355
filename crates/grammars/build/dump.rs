//! The bytes of tables: only a compiler knows them. So a program is made of the tables, for the machine that builds,
//! which writes them to a file.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::BuildError;
use crate::cut::{ParserSource, Table};
use crate::unpack::{NONE, SKIP};

/// A table as it is in memory.
pub struct DumpedTable {
    pub bytes: Vec<u8>,
    /// Size of an element in bytes, compared with the size that the compiler of the parser uses.
    pub element: usize,
}

/// The tables of `parser`, in its order, and of its functions that find tokens what they say of `characters`: see
/// [`crate::lexers`]. Of names the bytes are, for each, 0 for none, or 1, its text and 0.
pub fn dump(
    parser: &ParserSource,
    characters: &[i32],
    headers: &Path,
    folder: &Path,
) -> Result<Vec<DumpedTable>, BuildError> {
    let (source, program, file) = (
        folder.join("dump.c"),
        folder.join(format!("dump{}", env::consts::EXE_SUFFIX)),
        folder.join("tables"),
    );
    fs::write(&source, text(parser, characters)?)?;
    compile(&source, &program, headers, folder)?;
    let output = Command::new(&program).arg(&file).output().map_err(|e| {
        format!(
            "{} does not run here: {e}. It was built with the compiler for this machine: HOST_CC names another",
            program.display()
        )
    })?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), output.status).into());
    }
    let (sizes, bytes) = (String::from_utf8(output.stdout)?, fs::read(&file)?);
    split(&sizes, &bytes).ok_or_else(|| format!("{} wrote too little", program.display()).into())
}

fn split(sizes: &str, mut bytes: &[u8]) -> Option<Vec<DumpedTable>> {
    let mut dumped = Vec::new();
    for line in sizes.lines() {
        let (size, element) = line.trim().split_once(' ')?;
        let (own, rest) = bytes.split_at_checked(size.parse().ok()?)?;
        dumped.push(DumpedTable { bytes: own.to_vec(), element: element.parse().ok()? });
        bytes = rest;
    }
    Some(dumped)
}

fn text(parser: &ParserSource, characters: &[i32]) -> Result<String, BuildError> {
    let mut text = parser.head.clone();
    for table in &parser.tables {
        text.push_str(&table.text);
    }
    text.push_str(&asking(parser, characters));
    text.push_str(
        "static int put(const void *bytes, unsigned long size, FILE *file) {\n\
         \treturn fwrite(bytes, 1, size, file) == size;\n\
         }\n\
         int main(int count, char **names) {\n\
         \tFILE *file = count == 2 ? fopen(names[1], \"wb\") : NULL;\n\
         \tif (!file) return 1;\n",
    );
    for Table { name, kind, .. } in &parser.tables {
        let rest = if kind.contains('*') {
            format!(
                "\tlong before_{name} = ftell(file);\n\
                 \tfor (unsigned long i = 0; i < sizeof {name} / sizeof {name}[0]; i++) {{\n\
                 \t\tif (!{name}[i]) fputc(0, file);\n\
                 \t\telse if (fputc(1, file) == EOF || fputs({name}[i], file) == EOF || fputc(0, file) == EOF) return 1;\n\
                 \t}}\n\
                 \tprintf(\"%lu 1\\n\", (unsigned long)(ftell(file) - before_{name}));\n"
            )
        } else {
            format!(
                "\tif (!put({name}, sizeof {name}, file)) return 1;\n\
                 \tprintf(\"%lu %lu\\n\", (unsigned long)sizeof {name}, (unsigned long)sizeof({kind}));\n"
            )
        };
        text.push_str(&rest);
    }
    for lexer in parser.lexers() {
        writeln!(
            text,
            "\tlong before_{lexer} = ftell(file);\n\
             \tif (!put_lexer({lexer}, file)) return 1;\n\
             \tprintf(\"%lu 2\\n\", (unsigned long)(ftell(file) - before_{lexer}));"
        )?;
    }
    writeln!(text, "\treturn fclose(file) == 0 ? 0 : 1;\n}}")?;
    Ok(text)
}

/// The functions that find tokens, made to take one step only, and what asks them: in every state, at the end, about
/// what is no character, and about each of `characters`.
fn asking(parser: &ParserSource, characters: &[i32]) -> String {
    let characters: Vec<_> = characters.iter().map(ToString::to_string).collect();
    format!(
        r"#include <stdio.h>
#undef START_LEXER
#undef ADVANCE
#undef ADVANCE_MAP
#undef SKIP
#undef ACCEPT_TOKEN
#undef END_STATE
#define START_LEXER() bool eof = false; int32_t lookahead = lexer->lookahead;
#define ADVANCE(to) {{ the_step = (to); return true; }}
#define ADVANCE_MAP(...) {{ \
  static const uint16_t map[] = {{ __VA_ARGS__ }}; \
  for (size_t i = 0; i < sizeof map / sizeof map[0]; i += 2) {{ \
    if (map[i] == lookahead) ADVANCE(map[i + 1]) \
  }} \
}}
#define SKIP(to) {{ the_step = SKIPPED | (to); return true; }}
#define ACCEPT_TOKEN(token) the_end = (token);
#define END_STATE() return true;
enum {{ NO_STEP = {NONE}, SKIPPED = {SKIP} }};
static uint16_t the_step, the_end;
static bool is_at_end;
static bool asked_for_end(const TSLexer *lexer) {{ (void)lexer; return is_at_end; }}
{lexers}
static int put_lexer(bool (*lex)(TSLexer *, TSStateId), FILE *file) {{
  static const int32_t characters[] = {{0, -1, {characters}}};
  enum {{ COUNT = sizeof characters / sizeof characters[0] }};
  static uint16_t row[1 + COUNT];
  TSLexer lexer = {{.eof = asked_for_end}};
  for (unsigned state = 0; state < SKIPPED; state++) {{
    for (unsigned at = 0; at < COUNT; at++) {{
      the_step = the_end = NO_STEP;
      is_at_end = at == 0;
      lexer.lookahead = characters[at];
      // There is no such state.
      if (!lex(&lexer, (TSStateId)state)) return at == 0;
      // Whether a token ends does not depend on what follows.
      if (at > 0 && row[0] != the_end) return 0;
      row[0] = the_end;
      row[1 + at] = the_step;
    }}
    if (fwrite(row, sizeof row, 1, file) != 1) return 0;
  }}
  return 0;
}}
",
        lexers = parser.lexers,
        characters = characters.join(", ")
    )
}

fn compile(source: &Path, program: &Path, headers: &Path, folder: &Path) -> Result<(), BuildError> {
    let host = env::var("HOST")?;
    let compiler = cc::Build::new()
        .target(&host)
        .host(&host)
        .opt_level(0)
        .include(headers)
        .debug(false)
        .warnings(false)
        .cargo_metadata(false)
        .try_get_compiler()?;
    let mut command = compiler.to_command();
    command.current_dir(folder).arg(source);
    if compiler.is_like_msvc() {
        command.arg("/utf-8").arg(format!("/Fe:{}", program.display()));
    } else {
        command.arg("-o").arg(program);
    }
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&said)).into())
}
