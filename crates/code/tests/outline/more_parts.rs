//! Parts that are written in a way that is not the usual one.

use super::{named, outline};

/// The parts of a text, each with its kind and its path.
fn check(path: &str, text: &str, expected: &[&str]) {
    assert_eq!(named(path, text), expected, "{text}");
}

/// The lines of the first part of a text, and what documents it.
fn check_first(path: &str, text: &str, expected: (usize, usize, Option<&str>)) {
    let outline = outline(path, text);
    let part = &outline.parts[0];
    let (lines, doc) = (part.all_lines(), part.doc.as_ref().map(|doc| doc.text.as_str()));
    assert_eq!((lines.first, lines.last, doc), expected, "{text}");
}

#[test]
fn what_ruby_names_with_those_around_it_has_them_around_what_is_inside() {
    for (text, expected) in [
        (
            "module A::B; class C; def m; end; end; end",
            &["module A/B", "class A/B/C", "method A/B/C/m"][..],
        ),
        (
            "class A::B::E; def m; end; X = 1; end",
            &["class A/B/E", "method A/B/E/m", "constant A/B/E/X"],
        ),
        (
            "module M; class A::B; def m; end; end; end",
            &["module M", "class M/A/B", "method M/A/B/m"],
        ),
        ("class ::Root; def m; end; end", &["class Root", "method Root/m"]),
        ("class ::A::B; def m; end; end", &["class A/B", "method A/B/m"]),
    ] {
        check("a.rb", text, expected);
    }
}

#[test]
fn ruby() {
    for (text, expected) in [
        ("X, Y = 1, 2", &["constant X", "constant Y"][..]),
        ("a, B = 1, 2", &["constant B"]),
        ("class A; attr_reader \"c\", :d; end", &["class A", "field A/c", "field A/d"]),
        ("class A; define_method(\"x\") { 1 }; end", &["class A", "method A/x"]),
        ("class A; define_method(:x) { 1 }; end", &["class A", "method A/x"]),
    ] {
        check("a.rb", text, expected);
    }
}

#[test]
fn what_is_exported_without_a_name_is_the_default() {
    for (text, expected) in [
        ("export default function () { return 1 }", &["function default"][..]),
        ("export default function* () {}", &["function default"]),
        ("export default async (a) => a", &["function default"]),
        ("export default class { run() {} }", &["class default", "method default/run"]),
        ("export default class extends A { run() {} }", &["class default", "method default/run"]),
        ("export default function named() {}", &["function named"]),
        ("export default class Named {}", &["class Named"]),
        ("export default 3", &[]),
    ] {
        for path in ["a.js", "a.ts", "a.tsx"] {
            check(path, text, expected);
        }
    }
    let outline = outline("a.js", "// About it.\nexport default class extends A {\n}\n");
    assert_eq!(outline.parts[0].signature, "export default class extends A");
    assert_eq!(outline.parts[0].all_lines().last, 2);
}

#[test]
fn bash() {
    for (text, expected) in [
        ("declare -A G\n", &["constant G"][..]),
        ("declare -A G=([a]=b)\ntypeset -i N\n", &["constant G", "constant N"]),
        ("export PATH\n", &[]),
        (
            "if a; then\n  A=1\nelif b; then\n  export B=2\nelse\n  C=3\nfi\n",
            &["constant A", "constant B", "constant C"],
        ),
        ("f() {\n  if a; then\n    A=1\n  fi\n}\n", &["function f"]),
        ("if a; then\n  A=1 run\nfi\n", &[]),
        ("(\n  if a; then A=1; fi\n)\n", &[]),
    ] {
        check("a.sh", text, expected);
    }
}

#[test]
fn what_go_embeds_is_a_field() {
    check(
        "a.go",
        "package a\n\ntype T struct {\n\tBase\n\t*Other\n\tsync.Mutex\n\t*b.C[int]\n\tList[int] `tag`\n\tname, more string\n}\n",
        &[
            "module a",
            "struct T",
            "field T/Base",
            "field T/Other",
            "field T/Mutex",
            "field T/C",
            "field T/List",
            "field T/name",
            "field T/more",
        ],
    );
}

#[test]
fn a_short_error_does_not_hide_what_a_keyword_begins() {
    for (text, expected) in [
        ("fun g() {\n  open.x()\n}\n", &["function g"][..]),
        (
            "fun f() {}\n\nfun g() {\n  open.x()\n}\n\nfun h() {}\n",
            &["function f", "function g", "function h"],
        ),
        ("class A {\n  fun g() {\n    open.x()\n    b()\n  }\n}\n", &["class A", "method A/g"]),
        // What follows is no function: it has parameters and a brace, but no word before it.
        (
            "fun g() {\n  open.x()\n  server.close()\n  client.newBuilder()\n    .build()\n  run {\n    some.other.call.that.makes.it.more.than.a.hundred.bytes.long()\n  }\n}\n",
            &["function g"],
        ),
    ] {
        check("a.kt", text, expected);
    }
}

#[test]
fn the_line_that_says_what_runs_a_file_documents_nothing() {
    check_first("a.sh", "#!/bin/bash\nA=1\n", (1, 1, None));
    check_first("a.py", "#!/usr/bin/env python3\n# About it.\nA = 1\n", (1, 2, Some("About it.")));
    check_first("a.rb", "#!/usr/bin/ruby\ndef a; end\n", (1, 1, None));
}

#[test]
fn a_licence_documents_nothing() {
    check_first("A.java", "/*\n * Copyright 2020 A.\n */\npackage a;\n", (3, 3, None));
    check_first("a.kt", "// SPDX-License-Identifier: MIT\npackage a\n", (1, 1, None));
    check_first("a.go", "// Copyright 2020\n// All rights reserved.\npackage a\n", (2, 2, None));
    check_first("a.sh", "#!/bin/sh\n# Licensed under the A.\nA=1\n", (2, 2, None));
    check_first("a.lua", "-- Copyright 2020\nfunction a()\nend\n", (1, 2, None));
    check_first("a.go", "// Package a walks.\npackage a\n", (0, 1, Some("Package a walks.")));
    check_first("a.c", "int a;\n", (0, 0, None));
    // Only the first comment is about the file.
    let later = outline("a.c", "int a;\n\n// Checks the copyright.\nint b(void);\n");
    assert!(later.parts[1].doc.is_some());
}

#[test]
fn a_script_may_say_itself_what_it_is_in() {
    for (path, text, expected) in [
        ("run", "#!/usr/bin/env python3\n", Some("python")),
        ("run", "#!/usr/bin/python2.7 -u\n", Some("python")),
        ("bin/run", "#!/bin/bash\n", Some("bash")),
        ("run", "#! /bin/sh -e\r\n", Some("bash")),
        ("run", "#!/usr/bin/env -S node --trace\n", Some("javascript")),
        ("run", "#!/usr/bin/env A=b ruby", Some("ruby")),
        ("run", "#!/usr/bin/php\n<?php\n", Some("php")),
        ("run", "#!/usr/bin/perl\n", None),
        ("a.txt", "#!/bin/sh\n", None),
        ("run", "#!\n", None),
        ("run", "#!/usr/bin/env\n", None),
        ("run", "a\n#!/bin/sh\n", None),
        ("run", "", None),
        ("a.rs", "#!/bin/sh\n", Some("rust")),
    ] {
        assert_eq!(outline(path, text).language, expected, "{text}");
    }
    check("run", "#!/usr/bin/env python3\ndef walk():\n    pass\n", &["function walk"]);
}
