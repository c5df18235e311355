//! The languages there are parsers for: one row each.

/// A parser, and where its source is.
pub struct LanguageSource {
    /// Name in this crate.
    pub name: &'static str,
    /// The package, which is among the dev-dependencies.
    pub package: &'static str,
    /// The folder in it that has `parser.c`.
    pub folder: &'static str,
}

const fn row(name: &'static str, package: &'static str, folder: &'static str) -> LanguageSource {
    LanguageSource { name, package, folder }
}

pub const LANGUAGES: &[LanguageSource] = &[
    row("bash", "tree-sitter-bash", "src"),
    row("c", "tree-sitter-c", "src"),
    row("cpp", "tree-sitter-cpp", "src"),
    row("csharp", "tree-sitter-c-sharp", "src"),
    row("css", "tree-sitter-css", "src"),
    row("go", "tree-sitter-go", "src"),
    row("html", "tree-sitter-html", "src"),
    row("java", "tree-sitter-java", "src"),
    row("javascript", "tree-sitter-javascript", "src"),
    row("json", "tree-sitter-json", "src"),
    row("kotlin", "tree-sitter-kotlin-ng", "src"),
    row("php", "tree-sitter-php", "php/src"),
    row("python", "tree-sitter-python", "src"),
    row("ruby", "tree-sitter-ruby", "src"),
    row("rust", "tree-sitter-rust", "src"),
    row("swift", "tree-sitter-swift", "src"),
    row("toml", "tree-sitter-toml-ng", "src"),
    row("tsx", "tree-sitter-typescript", "tsx/src"),
    row("typescript", "tree-sitter-typescript", "typescript/src"),
    row("yaml", "tree-sitter-yaml", "src"),
];
