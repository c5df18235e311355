//! Parts in each language.

use expect_test::{Expect, expect};

use super::{outline, shown};
use code::language;
use code::outline::OutlineOrigin;

pub(super) fn check(path: &str, text: &str, expected: &Expect) {
    let outline = outline(path, text);
    assert_eq!(outline.origin, OutlineOrigin::Parsed);
    assert!(!outline.cut);
    expected.assert_eq(&shown(&outline));
    for part in &outline.parts {
        let written = &text[part.name_bytes.clone()];
        let written = written.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(written == part.name || written[1..written.len() - 1] == part.name, "{part:?}");
        assert!(part.bytes.start <= part.name_bytes.start && part.name_bytes.end <= part.bytes.end);
        assert!(part.lines.first <= part.name_line && part.name_line <= part.lines.last);
        assert_eq!(text::lines::count(&text[..part.bytes.end]) - 1, part.lines.last);
    }
}

#[test]
fn a_language_is_told_by_the_name_of_the_file() {
    for (path, expected) in [
        ("src/main.rs", Some("rust")),
        ("a.py", Some("python")),
        ("a.pyi", Some("python")),
        ("a.go", Some("go")),
        ("A.java", Some("java")),
        ("a.c", Some("c")),
        ("a.H", Some("c")),
        ("a.mjs", Some("javascript")),
        ("a.d.ts", Some("typescript")),
        ("a.tsx", Some("tsx")),
        ("a.json", Some("json")),
        ("Cargo.lock", Some("toml")),
        ("some\\folder\\a.toml", Some("toml")),
        (".github/a.yml", Some("yaml")),
        ("a.html", Some("html")),
        ("a.css", Some("css")),
        ("a.jsx", Some("javascript")),
        ("a.cc", Some("cpp")),
        ("a.HPP", Some("cpp")),
        ("a.cs", Some("csharp")),
        ("a.rb", Some("ruby")),
        ("lib/Rakefile", Some("ruby")),
        ("a.gemspec", Some("ruby")),
        ("index.php", Some("php")),
        ("a.sh", Some("bash")),
        ("home/.bashrc", Some("bash")),
        ("A.kt", Some("kotlin")),
        ("build.gradle.kts", Some("kotlin")),
        ("A.swift", Some("swift")),
        ("rs", None),
        ("a.rs/b", None),
        ("Makefile", None),
        ("a.", None),
        ("", None),
    ] {
        assert_eq!(language::of_path(path).map(language::Language::name), expected, "{path}");
    }
}

#[test]
fn every_query_fits_its_grammar() {
    let names: Vec<_> = language::all()
        .map(|language| {
            language.loaded().tags();
            language.name()
        })
        .collect();
    assert_eq!(names.len(), 20);
}

#[test]
fn rust() {
    check(
        "a.rs",
        r#"//! About the file.

/// Walks.
/// Twice.
#[derive(Debug)]
pub struct Walker<'a, T>
where
    T: Clone,
{
    /// Where.
    pub root: &'a T,
    depth: usize, // how deep
}

impl<'a, T: Clone> fmt::Display for some::Walker<'a, T> {
    const MOST: usize = 3;

    // A note.
    fn fmt(
        &self,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        fn inner() {}
        Ok(())
    }
}

pub enum PartKind { One, Two(u8) }
struct Pair(u8, u8);
/// About nothing.

union Raw { a: u8 }
pub trait Store: Send {
    type Item;
    fn read(&self) -> Self::Item;
}
type Short<T> = Vec<T>;
static COUNT: usize = 0;
macro_rules! twice { ($a:expr) => { $a } }
mod tests {
    #[test]
    fn works() { assert!(true) }
}
extern "C" { fn abs(a: i32) -> i32; }
"#,
        &expect![[r#"
            2-12 struct Walker: pub struct Walker<'a, T> where T: Clone // Walks. Twice.
            9-10 field Walker/root: pub root: &'a T // Where.
            11-11 field Walker/depth: depth: usize
            15-15 constant Walker/MOST: const MOST: usize = 3
            18-24 method Walker/fmt: fn fmt( &self, f: &mut fmt::Formatter<'_>, ) -> fmt::Result
            22-22 function Walker/fmt/inner: fn inner()
            27-27 enum PartKind: pub enum PartKind
            27-27 constant PartKind/One: One
            27-27 constant PartKind/Two: Two(u8)
            28-28 struct Pair: struct Pair(u8, u8)
            31-31 struct Raw: union Raw
            31-31 field Raw/a: a: u8
            32-35 trait Store: pub trait Store: Send
            33-33 type Store/Item: type Item
            34-34 method Store/read: fn read(&self) -> Self::Item
            36-36 type Short: type Short<T> = Vec<T>
            37-37 constant COUNT: static COUNT: usize = 0
            38-38 macro twice: macro_rules! twice
            39-42 module tests: mod tests
            40-41 function tests/works: fn works()
            43-43 function abs: fn abs(a: i32) -> i32
        "#]],
    );
}

#[test]
fn python() {
    check(
        "a.py",
        r#""""About the file."""
LIMIT = 10
name: str = "a"

# Above.
@decorate(1)
async def walk(root, *,
               deep=True) -> int:
    """Walks.

    Deep."""
    local = 1
    def inner(): pass

class Walker(Base):
    'A walker.'
    most = 3

    @property
    def root(self):
        # not this
        return self._root

if True:
    def maybe(): ...
"#,
        &expect![[r#"
            1-1 constant LIMIT: LIMIT = 10
            2-2 constant name: name: str = "a"
            5-12 function walk: async def walk(root, *, deep=True) -> int // Walks. Deep.
            12-12 function walk/inner: def inner()
            14-21 class Walker: class Walker(Base) // A walker.
            16-16 field Walker/most: most = 3
            18-21 method Walker/root: def root(self)
            24-24 function maybe: def maybe()
        "#]],
    );
}

#[test]
fn go() {
    check(
        "a.go",
        r#"package walk

// Walker walks.
type Walker[T any] struct {
	Root string // where
	a, b int
}

type (
	// Store stores.
	Store interface {
		Read(name string) error
	}
	ID = string
)

const Most = 3
const (
	One = iota
	Two
)
var (
	x, y = 1, 2
)

// Walk walks.
func (w *Walker[T]) Walk(deep bool) error {
	var local = 1
	return nil
}
func New() *Walker[int] { return nil }
"#,
        &expect![[r#"
            0-0 module walk: package walk
            2-6 struct Walker: type Walker[T any] struct // Walker walks.
            4-4 field Walker/Root: Root string
            5-5 field Walker/a: a, b int
            5-5 field Walker/b: a, b int
            9-12 interface Store: Store interface // Store stores.
            11-11 method Store/Read: Read(name string) error
            13-13 type ID: ID = string
            16-16 constant Most: const Most = 3
            18-18 constant One: One = iota
            19-19 constant Two: Two
            22-22 constant x: x, y = 1, 2
            22-22 constant y: x, y = 1, 2
            25-29 method Walker/Walk: func (w *Walker[T]) Walk(deep bool) error // Walk walks.
            30-30 function New: func New() *Walker[int]
        "#]],
    );
}

#[test]
fn java() {
    check(
        "A.java",
        r#"package a.b;

/**
 * Walks.
 * @param x
 */
@Deprecated
public class Walker<T> extends Base {
    private static final int MOST = 3, LEAST = 1;

    public Walker() {}

    @Override
    public <U> List<U> walk(
        String root) throws IOException {
        int local = 1;
        return null;
    }
    interface Store { void read(); }
    enum PartKind { ONE, TWO { void a() {} } }
    record Point(int x, int y) {}
    @interface Mark { int value() default 1; }
}
"#,
        &expect![[r#"
            0-0 module a.b: package a.b
            2-22 class Walker: @Deprecated public class Walker<T> extends Base // Walks. @param x
            8-8 field Walker/MOST: private static final int MOST = 3, LEAST = 1
            8-8 field Walker/LEAST: private static final int MOST = 3, LEAST = 1
            10-10 method Walker/Walker: public Walker()
            12-17 method Walker/walk: @Override public <U> List<U> walk( String root) throws IOException
            18-18 interface Walker/Store: interface Store
            18-18 method Walker/Store/read: void read()
            19-19 enum Walker/PartKind: enum PartKind
            19-19 constant Walker/PartKind/ONE: ONE
            19-19 constant Walker/PartKind/TWO: TWO
            19-19 method Walker/PartKind/TWO/a: void a()
            20-20 class Walker/Point: record Point(int x, int y)
            21-21 interface Walker/Mark: @interface Mark
            21-21 method Walker/Mark/value: int value() default 1
        "#]],
    );
}

#[test]
fn c() {
    check(
        "a.c",
        r#"#include <stdio.h>
#define MOST 3
#define TWICE(x) ((x) * 2)

/* A point. */
struct point {
    int x, *y;
    void (*call)(int);
};
typedef struct { int a; } box_t;
typedef int (*callback)(int);
typedef void (API *other)(int);
enum kind { ONE, TWO = 2 };
union raw { char c; };

int declared(int a);
char *declared_too(void);
static int table[] = { 1, 2 };

// Walks.
static const char **
walk(struct point *p, int (*f)(void))
{
    int local = 1;
    return 0;
}
"#,
        &expect![[r#"
            1-1 macro MOST: #define MOST 3
            2-2 macro TWICE: #define TWICE(x) ((x) * 2)
            4-8 struct point: struct point // A point.
            6-6 field point/x: int x, *y
            6-6 field point/y: int x, *y
            7-7 field point/call: void (*call)(int)
            9-9 type box_t: typedef struct { int a; } box_t
            9-9 field box_t/a: int a
            10-10 type callback: typedef int (*callback)(int)
            11-11 type other: typedef void (API *other)(int)
            12-12 enum kind: enum kind
            12-12 constant kind/ONE: ONE
            12-12 constant kind/TWO: TWO = 2
            13-13 struct raw: union raw
            13-13 field raw/c: char c
            15-15 function declared: int declared(int a)
            16-16 function declared_too: char *declared_too(void)
            17-17 constant table: static int table[] = { 1, 2 }
            19-25 function walk: static const char ** walk(struct point *p, int (*f)(void)) // Walks.
        "#]],
    );
}

#[test]
fn javascript() {
    check(
        "a.js",
        r#"// Walks.
export default function walk(root, { deep }) { return 1 }
export const most = 3
const arrow = async (a) => a, other = 1
var Old = function () {}
Old.prototype.step = function (a) {}
module.exports = { helper, run() {}, later: () => 1 }

/** A walker. */
export class Walker extends Base {
  #secret = 1
  static all = []
  constructor() { super() }
  async *#walk(a) { const local = 1 }
  get size() { return 0 }
}
function* generate() {}
describe('x', () => { function inner() {} })
"#,
        &expect![[r#"
            0-1 function walk: export default function walk(root, { deep }) // Walks.
            2-2 constant most: export const most = 3
            3-3 function arrow: arrow = async (a)
            3-3 constant other: other = 1
            4-4 function Old: var Old = function ()
            5-5 method Old/step: Old.prototype.step = function (a)
            6-6 constant exports: module.exports = { helper, run() {}, later: () => 1 }
            6-6 method exports/run: run()
            6-6 method exports/later: later: ()
            8-15 class Walker: export class Walker extends Base // A walker.
            10-10 field Walker/secret: #secret = 1
            11-11 field Walker/all: static all = []
            12-12 method Walker/constructor: constructor()
            13-13 method Walker/walk: async *#walk(a)
            14-14 method Walker/size: get size()
            16-16 function generate: function* generate()
            17-17 function inner: function inner()
        "#]],
    );
}

#[test]
fn typescript_and_its_casts() {
    check(
        "a.ts",
        r#"export interface Store<T> {
  read(name: string): Promise<T>
  readonly size: number
}
export type Short = { a: string; b?: number }
export enum PartKind { One, Two = 2 }
declare module "some" { export function load(): void }
namespace Inner { export const a = 1 }
export abstract class Walker<T> {
  private constructor(private root: string) {}
  abstract walk(): void
  @log() step(value: unknown) { return (<PartKind>value).valueOf() + <number><unknown>value }
  later = () => <PartKind>this.value
}
const generic = <T>(a: T): T => a
function overload(a: string): void
function overload(a: any) { return <any>{ a } }
const lower = a < b, shift = a << 2
const typed = <PartKind.One>lower
"#,
        &expect![[r#"
            0-3 interface Store: export interface Store<T>
            1-1 method Store/read: read(name: string): Promise<T>
            2-2 field Store/size: readonly size: number
            4-4 type Short: export type Short = { a: string; b?: number }
            4-4 field Short/a: a: string
            4-4 field Short/b: b?: number
            5-5 enum PartKind: export enum PartKind
            5-5 constant PartKind/One: One
            5-5 constant PartKind/Two: Two = 2
            6-6 module some: declare module "some"
            6-6 function some/load: export function load(): void
            7-7 module Inner: namespace Inner
            8-13 class Walker: export abstract class Walker<T>
            9-9 method Walker/constructor: private constructor(private root: string)
            10-10 method Walker/walk: abstract walk(): void
            11-11 method Walker/step: step(value: unknown)
            12-12 method Walker/later: later = ()
            14-14 function generic: const generic = <T>(a: T): T
            15-15 function overload: function overload(a: string): void
            16-16 function overload: function overload(a: any)
            17-17 constant lower: lower = a < b
            17-17 constant shift: shift = a << 2
            18-18 constant typed: const typed = <PartKind.One>lower
        "#]],
    );
}

#[test]
fn tsx() {
    check(
        "a.tsx",
        "export const View: FC<Props> = ({ a }) => <div id=\"x\">{a}</div>\n",
        &expect![[r#"
            0-0 function View: export const View: FC<Props> = ({ a })
        "#]],
    );
}

#[test]
fn json() {
    check(
        "a.json",
        "{\n  \"name\": \"a\",\n  \"scripts\": {\n    \"test\": \"x\",\n    \"deep\": {\"er\": 1}\n  }\n}\n",
        &expect![[r#"
            1-1 field name: "name": "a"
            2-5 module scripts: "scripts"
            3-3 field scripts/test: "test": "x"
            4-4 field scripts/deep: "deep": {"er": 1}
        "#]],
    );
}

#[test]
fn toml() {
    check(
        "a.toml",
        "top = 1\n\n# About it.\n[package]\nname = \"a\"\n[a.\"b c\"]\nx.y = 1\n[[bin]]\npath = { a = 1 }\n",
        &expect![[r#"
            0-0 field top: top = 1
            2-4 module package: [package] // About it.
            4-4 field package/name: name = "a"
            5-6 module a."b c": [a."b c"]
            6-6 field a."b c"/x.y: x.y = 1
            7-8 module bin: [[bin]]
            8-8 field bin/path: path = { a = 1 }
            8-8 field bin/path/a: a = 1
        "#]],
    );
}

#[test]
fn yaml() {
    check(
        "a.yaml",
        "# About it.\nname: a\n'on':\n  push:\n    branches: [main]\njobs:\n  - a\n",
        &expect![[r#"
            0-1 field name: name: a // About it.
            2-4 module on: 'on'
            3-4 field on/push: push: branches: [main]
            5-6 module jobs: jobs
        "#]],
    );
}

#[test]
fn html() {
    check(
        "a.html",
        "<!doctype html>\n<h1>A title\n here</h1>\n<div class=\"a\" id=\"main\">\n  <p id=intro>x</p>\n</div>\n<img id=\"i\" />\n",
        &expect![[r#"
            1-2 type A title here: <h1>A title here</h1>
            3-5 field main: <div class="a" id="main">
            4-4 field main/intro: <p id=intro>
            6-6 field i: <img id="i" />
        "#]],
    );
}

#[test]
fn css() {
    check(
        "a.css",
        ":root { --wide: 1px }\n/* About it. */\n.a > b,\n#c { color: red }\n@media print { .a { color: black } }\n@keyframes turn { from { top: 0 } }\n",
        &expect![[r#"
            0-0 class :root: :root
            0-0 constant :root/--wide: --wide: 1px
            1-3 class .a > b: .a > b, #c // About it.
            1-3 class #c: .a > b, #c // About it.
            4-4 module print: @media print
            4-4 class print/.a: .a
            5-5 type turn: @keyframes turn
        "#]],
    );
}

#[test]
fn lines_are_those_of_the_text_whatever_ends_them() {
    let text = "// About a.\nfn a() {\n    1\n}\n\n/// About b.\nfn b() {}\n";
    let expected = shown(&outline("a.rs", text));
    for ending in ["\r\n", "\r"] {
        let other = text.replace('\n', ending);
        let found = outline("a.rs", &other);
        assert_eq!(shown(&found), expected, "{ending:?}");
        assert_eq!(&other[found.parts[1].bytes.clone()], "fn b() {}");
    }
}

#[test]
fn what_does_not_parse_is_guessed() {
    check(
        "a.rs",
        "struct A;\nfn first() {}\nimpl A {\n    fn half(&self) {\n        if true {\n/*\n    fn none() {}\n*/\n    fn whole(&self) -> u8 {\n        1\n    }\n\nfn last() {}\n",
        &expect![[r#"
            0-0 struct A: struct A
            1-1 function first: fn first()
            3-5 function half: fn half(&self)
            8-10 function whole: fn whole(&self) -> u8
            12-12 function last: fn last()
        "#]],
    );
}
