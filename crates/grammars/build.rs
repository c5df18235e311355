//! Packs the tables of each parser, and compiles the rest of it.
//!
//! - `build/list.rs`: which there are; `build/sources.rs`: where their sources are
//! - `build/cut.rs`: a `parser.c` cut into its tables and the rest; `build/dump.rs`: the bytes of the tables
//! - `build/lexers.rs`: the functions that find tokens, as tables
//! - `build/pack.rs`: the bytes packed; `build/parser.rs`: the rest, as it is compiled
//!
//! The library includes the generated `languages.rs`.

#[path = "build/cut.rs"]
mod cut;
#[path = "build/dump.rs"]
mod dump;
#[path = "build/lexers.rs"]
mod lexers;
#[path = "build/list.rs"]
mod list;
#[path = "build/pack.rs"]
mod pack;
#[path = "build/parser.rs"]
mod parser;
#[path = "build/sources.rs"]
mod sources;
#[expect(dead_code, reason = "of where tables are, the library reads more")]
#[path = "src/unpack.rs"]
mod unpack;

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, iter, thread};

use cut::ParserSource;
use dump::DumpedTable;
use lexers::LexerTable;
use list::{LANGUAGES, LanguageSource};
use sources::Sources;
use unpack::{Automaton, Layout, Tokens};

/// An error of the build; errors come from several threads.
type BuildError = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), BuildError> {
    let host = if cfg!(target_endian = "little") { "little" } else { "big" };
    if env::var("CARGO_CFG_TARGET_ENDIAN")? != host {
        return Err("tables are taken from a program for this machine, whose byte order is not the target's".into());
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // Some tools that ask a compiler what it can leave a file where they are.
    env::set_current_dir(&out)?;
    let sources = Sources::find()?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/unpack.rs");
    println!("cargo::rerun-if-changed={}", sources.lock_file.display());
    for row in LANGUAGES {
        let folder = sources.folder(row.package)?.join(row.folder);
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let mut languages = build_all(&sources, &out)?.concat();
    writeln!(
        languages,
        "/// Every language there is.\npub static ALL: [&PackedGrammar; {}] = [",
        LANGUAGES.len()
    )?;
    for row in LANGUAGES {
        writeln!(languages, "    &{},", row.name.to_uppercase())?;
    }
    languages.push_str("];\n");
    fs::write(out.join("languages.rs"), languages)?;
    Ok(())
}

/// Builds all languages, as many at a time as cargo allows.
fn build_all(sources: &Sources, out: &Path) -> Result<Vec<String>, BuildError> {
    let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let next = AtomicUsize::new(0);
    let built = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((at, row)) = next_of(&next) {
                    let one = build(row, sources, &out.join(row.name))
                        .map_err(|e| format!("{}: {e}", row.package));
                    built.lock().expect("nobody panics with it").push((at, one));
                }
            });
        }
    });
    let mut built = built.into_inner()?;
    built.sort_by_key(|(at, _)| *at);
    built.into_iter().map(|(_, one)| Ok(one?)).collect()
}

fn next_of(next: &AtomicUsize) -> Option<(usize, &'static LanguageSource)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, LANGUAGES.get(at)?))
}

/// Packs and compiles one. Returns what the library says of it.
fn build(row: &LanguageSource, sources: &Sources, out: &Path) -> Result<String, BuildError> {
    let folder = sources.folder(row.package)?.join(row.folder);
    fs::create_dir_all(out)?;
    // For whoever compares.
    fs::write(out.join("source"), slashed(&folder)?)?;
    let parser = cut::cut(&fs::read_to_string(folder.join("parser.c"))?)?;
    let characters = lexers::characters(&parser.lexers)?;
    let mut dumped = dump::dump(&parser, &characters, &folder, out)?;
    if dumped.len() != parser.tables.len() + parser.lexers().count() {
        return Err("not every table was dumped".into());
    }
    let lexers = dumped.split_off(parser.tables.len());
    let mut tables = Tables::lay_out(&parser, &dumped)?;
    tables.add_lexers(&characters, &lexers)?;
    let packed = out.join("packed");
    fs::write(&packed, tables.packed()?)?;
    let mut files =
        vec![(out.join("parser.c"), parser::text(row.name, &parser, &dumped, &tables.offsets)?)];
    let scanner = folder.join("scanner.c");
    if scanner.is_file() {
        let source = fs::read_to_string(&scanner)?;
        let text = parser::scanner(row.name, &parser, &slashed(&scanner)?, &source);
        files.push((out.join("scanner.c"), text));
    }
    compile(row.name, &folder, &files)?;
    tables.rust(row.name, &packed)
}

fn compile(name: &str, headers: &Path, files: &[(PathBuf, String)]) -> Result<(), BuildError> {
    let mut compiler = cc::Build::new();
    compiler.std("c11").include(headers).warnings(false).debug(false);
    // It parses as fast as any, and is a fifth smaller.
    compiler.opt_level_str("s");
    // No panic passes through C: what C calls of ours aborts.
    compiler.flag_if_supported("-fno-asynchronous-unwind-tables");
    if compiler.try_get_compiler()?.is_like_msvc() {
        compiler.flag("-utf-8");
    }
    for (path, text) in files {
        fs::write(path, text)?;
        compiler.file(path);
    }
    Ok(compiler.try_compile(&format!("grammars_{name}"))?)
}

/// Returns a path as C includes it, on every system.
fn slashed(path: &Path) -> Result<String, BuildError> {
    Ok(path.to_str().ok_or("a path that is not text")?.replace('\\', "/"))
}

/// All tables of a language as they are in memory, one after another.
#[derive(Default)]
struct Tables {
    words: Vec<u16>,
    layout: Layout,
    offsets: parser::TableOffsets,
    texts: Vec<u8>,
    /// Number of names.
    names: usize,
}

impl Tables {
    /// Alignment of each table: that of the largest element.
    const ALIGNED: usize = 8;

    fn lay_out(parser: &ParserSource, dumped: &[DumpedTable]) -> Result<Self, BuildError> {
        let mut tables = Self::default();
        for (table, DumpedTable { bytes, .. }) in parser.tables.iter().zip(dumped) {
            if table.is_names() {
                tables.offsets.push(tables.names);
                tables.names += count_names(bytes)?;
                tables.texts.extend(bytes);
                continue;
            }
            tables.offsets.push(tables.words.len() * 2);
            let own = tables.add(&words(bytes));
            match table.name.as_str() {
                "ts_primary_state_ids" => tables.layout.counted = own,
                "ts_small_parse_table" => tables.layout.states = own,
                "ts_small_parse_table_map" => tables.layout.starts = own,
                _ => {}
            }
        }
        tables.layout.width = width(&parser.head)?;
        Ok(tables)
    }

    /// Adds the tables that find tokens: for each character, for the end, and for bytes that are no character.
    fn add_lexers(&mut self, characters: &[i32], lexers: &[DumpedTable]) -> Result<(), BuildError> {
        let width = characters.len() + 2;
        let asked: Vec<_> =
            lexers.iter().map(|one| LexerTable::read(&words(&one.bytes), width)).collect();
        let (classes, firsts) = lexers::classes(&asked, width);
        let gaps =
            characters.iter().zip(iter::once(&0).chain(characters)).map(|(one, last)| one - last);
        let gaps: Result<Vec<u16>, _> = gaps.map(u16::try_from).collect();
        let mut automata = asked.iter().map(|one| Automaton {
            ends: self.add(&one.ends),
            steps: self.add(&one.steps(&firsts)),
        });
        let (all, keywords) = (automata.next().ok_or("nothing finds tokens")?, automata.next());
        drop(automata);
        self.layout.tokens = Tokens {
            gaps: self.add(&gaps?),
            classes: self.add(&classes),
            all,
            keywords: keywords.unwrap_or_default(),
        };
        Ok(())
    }

    /// Returns where it is now.
    fn add(&mut self, table: &[u16]) -> Range<usize> {
        let first = self.words.len();
        self.words.extend(table);
        self.words.resize(self.words.len().next_multiple_of(Self::ALIGNED / 2), 0);
        self.layout.words = self.words.len();
        first..first + table.len()
    }

    fn packed(&self) -> Result<Vec<u8>, BuildError> {
        let packed = pack::pack(&self.layout, &self.words, &self.texts);
        let mut words = vec![0; self.words.len()];
        let texts = self.layout.unpack(&packed, &mut words);
        if texts.as_ref() != Some(&self.texts) || words != self.words {
            return Err("what was packed is not what is unpacked".into());
        }
        Ok(packed)
    }

    fn rust(&self, name: &str, packed: &Path) -> Result<String, BuildError> {
        let constant = name.to_uppercase();
        let path = packed.to_str().ok_or("a path that is not text")?;
        let (layout, names) = (&self.layout, self.names);
        Ok(format!(
            "unsafe extern \"C\" {{\n\
             \x20   fn grammars_{name}(place: *mut c_void, tables: *const c_void, names: *const *const c_char, lex: LexFn, keywords: LexFn) -> usize;\n\
             }}\n\
             pub static {constant}: PackedGrammar = PackedGrammar {{\n\
             \x20   name: {name:?},\n\
             \x20   layout: {layout:?},\n\
             \x20   names: {names},\n\
             \x20   bytes: include_bytes!({path:?}),\n\
             \x20   make: grammars_{name},\n\
             }};\n"
        ))
    }
}

/// Bytes as words; if one is left over, with a 0.
fn words(bytes: &[u8]) -> Vec<u16> {
    let word = |pair: &[u8]| u16::from_ne_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
    bytes.chunks(2).map(word).collect()
}

fn count_names(mut bytes: &[u8]) -> Result<usize, BuildError> {
    let mut count = 0;
    while let Some((is_there, rest)) = bytes.split_first() {
        let end = rest.iter().position(|byte| *byte == 0).filter(|_| *is_there == 1);
        bytes =
            if *is_there == 0 { rest } else { &rest[end.ok_or("a name without an end")? + 1..] };
        count += 1;
    }
    Ok(count)
}

fn width(head: &str) -> Result<usize, BuildError> {
    let line = head.lines().find_map(|line| line.strip_prefix("#define SYMBOL_COUNT "));
    Ok(line.ok_or("no number of symbols")?.trim().parse()?)
}
