//! Import cycles: modules of one parent must import one another one way only. A module and all below it count as one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::Outcome;
use crate::walls::{sources, without_tests};

/// A module by its path from the crate: `["http", "rest"]`.
type Module = Vec<String>;

/// The imports of one module.
#[derive(Default)]
struct Imports {
    /// Paths as they are written.
    paths: Vec<Vec<String>>,
    /// Names that the module re-exports, with their paths.
    exports: BTreeMap<String, Vec<String>>,
}

/// Fails if there is an import cycle among the sources of a crate.
pub fn check(src: &Path) -> Outcome {
    let mut modules = BTreeMap::new();
    for path in sources(src)? {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let name = path.strip_prefix(src).unwrap_or(&path);
        modules.insert(module_of(name), imports(without_tests(&text)));
    }
    let cycles: Vec<String> = cycles(&modules)
        .into_iter()
        .map(|cycle| format!("{}: an import cycle: {}", src.display(), cycle.join(" -> ")))
        .collect();
    if cycles.is_empty() { Ok(()) } else { Err(cycles.join("\n")) }
}

fn module_of(path: &Path) -> Module {
    let mut module: Module =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_root = module.len() == 1 && ["lib", "main"].contains(&module[0].as_str());
    if is_root || module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    module
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    PathSeparator,
    Open,
    Close,
    Other(char),
}

/// The tokens of a source that matter for paths. Comments and literals are left out.
fn tokens(source: &str) -> Vec<Token<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(text) = rest.strip_prefix('"') {
            1 + string_length(text)
        } else if let Some(length) = raw_string_length(rest) {
            length
        } else if let Some(length) = character_length(rest) {
            length
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(&rest[..length]));
            length
        } else {
            match first {
                ':' if rest.starts_with("::") => tokens.push(Token::PathSeparator),
                '{' => tokens.push(Token::Open),
                '}' => tokens.push(Token::Close),
                c if c.is_whitespace() => {}
                c => tokens.push(Token::Other(c)),
            }
            if rest.starts_with("::") { 2 } else { first.len_utf8() }
        };
        rest = &rest[length..];
    }
    tokens
}

/// Bytes of a string behind its opening quote.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string_length(rest: &str) -> Option<usize> {
    let marks = rest.strip_prefix('r')?.chars().take_while(|c| *c == '#').count();
    let text = rest[1 + marks..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    let length = text.find(&end).map_or(text.len(), |at| at + end.len());
    Some(2 + marks + length)
}

/// Bytes of a character literal. A lifetime is none.
fn character_length(rest: &str) -> Option<usize> {
    let text = rest.strip_prefix('\'')?;
    if let Some(escaped) = text.strip_prefix('\\') {
        return escaped.get(1..)?.find('\'').map(|at| 4 + at);
    }
    let first = text.chars().next()?.len_utf8();
    text[first..].starts_with('\'').then_some(2 + first)
}

fn imports(source: &str) -> Imports {
    let tokens = tokens(source);
    let mut imports = Imports::default();
    let mut at = 0;
    let mut is_export = false;
    while at < tokens.len() {
        match tokens[at] {
            Token::Word("pub") => is_export = true,
            Token::Word("use") => {}
            Token::Word(_) if at == 0 || tokens[at - 1] != Token::PathSeparator => {
                let is_import = at > 0 && tokens[at - 1] == Token::Word("use");
                let mut paths = Vec::new();
                at = read_path(&tokens, at, &[], &mut paths);
                for (name, path) in paths {
                    if is_import && is_export {
                        imports.exports.insert(name, path.clone());
                    }
                    imports.paths.push(path);
                }
                is_export &= is_restriction(&tokens, at);
                continue;
            }
            Token::Other(';') => is_export = false,
            _ => {}
        }
        at += 1;
    }
    imports
}

/// True within `pub(crate)`: what follows may still be an export.
fn is_restriction(tokens: &[Token<'_>], at: usize) -> bool {
    matches!(tokens.get(at), Some(Token::Other(')')))
}

/// Reads a path, or a tree of them. Adds each with the name that it is imported by; returns the place behind it.
fn read_path(
    tokens: &[Token<'_>],
    mut at: usize,
    prefix: &[String],
    paths: &mut Vec<(String, Vec<String>)>,
) -> usize {
    let mut path = prefix.to_vec();
    while let Some(Token::Word(word)) = tokens.get(at) {
        path.push((*word).to_owned());
        at += 1;
        if tokens.get(at) != Some(&Token::PathSeparator) {
            break;
        }
        at += 1;
        if tokens.get(at) == Some(&Token::Open) {
            at += 1;
            while at < tokens.len() && tokens[at] != Token::Close {
                let before = at;
                at = read_path(tokens, at, &path, paths);
                at += usize::from(at == before);
            }
            return at + 1;
        }
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if let (Some(Token::Word("as")), Some(Token::Word(alias))) =
        (tokens.get(at), tokens.get(at + 1))
    {
        (*alias).clone_into(&mut name);
        at += 2;
    }
    if path.len() > prefix.len() {
        paths.push((name, path));
    }
    at
}

/// Cycles among the modules of each parent.
fn cycles(modules: &BTreeMap<Module, Imports>) -> Vec<Vec<String>> {
    type Edges = BTreeMap<String, BTreeSet<String>>;
    let mut by_parent: BTreeMap<Module, Edges> = BTreeMap::new();
    for (module, imports) in modules {
        for path in &imports.paths {
            let Some(target) = absolute(modules, module, path) else { continue };
            let target = resolve(modules, &target, 0);
            let common = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
            if common < module.len() && common < target.len() {
                let edges = by_parent.entry(module[..common].to_vec()).or_default();
                edges.entry(module[common].clone()).or_default().insert(target[common].clone());
            }
        }
    }
    let mut found = Vec::new();
    for (parent, edges) in &by_parent {
        if let Some(cycle) = cycle(edges) {
            let shown = |name: String| [parent.join("::"), name].join("::");
            found.push(cycle.into_iter().map(shown).collect());
        }
    }
    found
}

/// A cycle, if there is one.
fn cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    // What imports nothing that is left is in no cycle.
    let mut left: BTreeMap<&String, BTreeSet<&String>> =
        edges.iter().map(|(from, to)| (from, to.iter().collect())).collect();
    loop {
        let names: BTreeSet<&String> = left.keys().copied().collect();
        let before = left.len();
        for to in left.values_mut() {
            to.retain(|name| names.contains(name));
        }
        left.retain(|_, to| !to.is_empty());
        if left.len() == before {
            break;
        }
    }
    let mut at = *left.keys().next()?;
    let mut way: Vec<&String> = Vec::new();
    while !way.contains(&at) {
        way.push(at);
        at = left[at].iter().next()?;
    }
    let start = way.iter().position(|name| *name == at)?;
    Some(way[start..].iter().chain([&at]).map(|name| (*name).clone()).collect())
}

/// A path from the crate. `None` for one that leads out of it, or is none of a module.
fn absolute(
    modules: &BTreeMap<Module, Imports>,
    module: &Module,
    path: &[String],
) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module.as_slice(), rest].concat()),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            Some([&module[..module.len().checked_sub(ups)?], &path[ups..]].concat())
        }
        _ => {
            let child = [module.as_slice(), &path[..1]].concat();
            modules.contains_key(&child).then(|| [module.as_slice(), path].concat())
        }
    }
}

/// The module that a path leads to, by way of re-exports.
fn resolve(modules: &BTreeMap<Module, Imports>, path: &[String], depth: usize) -> Module {
    const DEPTH_MAX: usize = 5;
    let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]));
    let (module, rest) = path.split_at(length.unwrap_or_default());
    let exported = rest.first().and_then(|name| modules.get(module)?.exports.get(name));
    let target = exported.and_then(|export| absolute(modules, &module.to_vec(), export));
    match target {
        Some(target) if depth < DEPTH_MAX => {
            resolve(modules, &[&target, &rest[1..]].concat(), depth + 1)
        }
        _ => module.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(modules: &[(&str, &str)]) -> Vec<String> {
        let modules = modules
            .iter()
            .map(|(path, source)| (module_of(Path::new(path)), imports(source)))
            .collect();
        cycles(&modules).into_iter().map(|cycle| cycle.join(" -> ")).collect()
    }

    #[test]
    fn modules_of_one_parent_import_one_another_one_way() {
        let one_way =
            [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "struct B;")];
        assert!(found(&one_way).is_empty());
        for back in ["use crate::a::A;", "fn b() { super::a::a() }", "use crate::{x, a::{A, C}};"] {
            let both = [("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", back)];
            assert_eq!(found(&both), ["::a -> ::b -> ::a"], "{back}");
        }
        let comments =
            [("a.rs", "use crate::b::B;"), ("b.rs", "// crate::a::A\nfn b() { \"crate::a\"; }")];
        assert!(found(&comments).is_empty());
    }

    #[test]
    fn a_module_and_all_below_it_count_as_one() {
        let parent = [("a.rs", "mod b; use b::B;"), ("a/b.rs", "use super::A; use crate::a::C;")];
        assert!(found(&parent).is_empty());
        let below = [("a/x.rs", "use crate::b::B;"), ("b.rs", "use crate::a::x::X;")];
        assert_eq!(found(&below), ["::a -> ::b -> ::a"]);
    }

    #[test]
    fn a_re_export_leads_to_its_module() {
        let by_root =
            [("lib.rs", "pub use a::A;"), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::A;")];
        assert_eq!(found(&by_root), ["::a -> ::b -> ::a"]);
        let renamed = [
            ("lib.rs", "pub(crate) use a::X as A;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::A;"),
        ];
        assert_eq!(found(&renamed), ["::a -> ::b -> ::a"]);
    }
}
