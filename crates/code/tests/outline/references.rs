//! Uses of a name.

use super::outline;
use code::references::references;

/// `«name»` in `marked` is where the name is used.
fn check(path: &str, name: &str, marked: &str) {
    let text = marked.replace(['«', '»'], "");
    let mut shown = text.clone();
    let found = references(path, &text, name, &outline(path, &text), &|| false);
    for range in found.iter().rev() {
        shown.insert(range.end, '»');
        shown.insert(range.start, '«');
    }
    assert_eq!(shown, marked, "{path}");
}

#[test]
fn a_use_is_a_name_outside_of_comments_and_strings_that_is_not_defined_there() {
    check(
        "a.rs",
        "walk",
        "/// walk\nfn walk() {}\nfn b() { «walk»(); \"walk\"; walker(); x.«walk»; vec![«walk»]; /* walk */ }\nuse a::«walk»;\n",
    );
    check("a.rs", "Walk", "struct Walk;\nimpl «Walk» { fn new() -> «Walk» { «Walk» {} } }\n");
    check(
        "a.py",
        "walk",
        "def walk(): 'walk'\n«walk»(a.«walk», walk_too, f'{«walk»} walk') # walk\n",
    );
    check("a.go", "Walk", "func Walk() {}\nfunc b() { x.«Walk»(`Walk`, \"Walk\") }\n");
    check("A.java", "walk", "class A { void walk() { this.«walk»(\"walk\"); } }\n");
    check(
        "a.c",
        "walk",
        "int walk(void) { return 1; }\n#define TWO (2 * «walk»())\nint b(void) { return «walk»() + 'a'; }\n",
    );
    check(
        "a.js",
        "walk",
        "function walk() {}\nconst b = { «walk», a: `${«walk»()} walk` }; b.«walk»\n",
    );
    check("a.js", "walk", "class A { #walk() { this.#«walk»() } }\n");
    check(
        "a.ts",
        "PartKind",
        "enum PartKind { A }\nconst a = <«PartKind»>b, c: «PartKind» = d as «PartKind»\n",
    );
    check(
        "a.cpp",
        "Walk",
        "class Walk { Walk(); };\nvoid «Walk»::go() { «Walk» a; b::«Walk»<int>(\"Walk\"); /* Walk */ }\n",
    );
    check("A.cs", "Walk", "class Walk {}\nclass B : «Walk» { «Walk» a = new «Walk»(\"Walk\"); }\n");
    check("a.rb", "Walk", "class Walk; end\nb = «Walk».new(\"Walk #{«Walk»}\", :«Walk») # Walk\n");
    check(
        "a.php",
        "walk",
        "<?php\nfunction walk() { return 'walk'; }\n«walk»($«walk», $a->«walk»());\n",
    );
    check("a.sh", "walk", "walk() { :; }\nif «walk» \"walk\"; then x=$(«walk» a); fi # walk\n");
    check("A.kt", "walk", "fun walk() = 1\nval a = «walk»() + b.«walk»(\"walk ${«walk»()}\")\n");
    check(
        "A.swift",
        "walk",
        "func walk() {}\nlet a = «walk»() + b.«walk»(\"walk \\(«walk»())\")\n",
    );
    check("a.tsx", "View", "const View = () => <div>View</div>\nconst b = <«View» />\n");
}

#[test]
fn without_a_grammar_every_whole_word_counts() {
    check("a.txt", "walk", "«walk» walker «walk», a_walk «walk»-«walk» Ωwalk\n");
    check("a.txt", "empty?", "empty «empty?» + nonempty?\n");
    check("a.rb", "empty?", "def empty?\n  «empty?» + nonempty?\nend\n");
    check("a.txt", "", "nothing\n");
    check("a.txt", "ä", "«ä» äb «ä»\n");
}

#[test]
fn it_can_be_stopped() {
    let text = "fn a() { b(); }\n".repeat(1_000);
    let outline = outline("a.rs", &text);
    let found = references("a.rs", &text, "b", &outline, &|| true);
    assert_eq!(found.len(), 1_000, "whole words, since there was no time for a tree");
}
