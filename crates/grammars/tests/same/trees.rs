//! The trees of both, node by node.

use std::fs;
use std::ops::ControlFlow;
use std::sync::Arc;

use grammars::Grammar;
use tree_sitter::{Language, Parser, TreeCursor};

use super::{pairs, sources};

/// The tree of `source` by the packed parser, and by the plain one.
fn check(grammar: &Arc<Grammar>, plain: &Language, source: &[u8]) {
    let packed = grammar.parse(source, &mut || ControlFlow::Continue(())).expect("a tree");
    let mut parser = Parser::new();
    parser.set_language(plain).expect("a language");
    let plain = parser.parse(source, None).expect("a tree");
    assert_same(packed.walk(), plain.walk(), source);
    assert_eq!(packed.root_node().to_sexp(), plain.root_node().to_sexp());
}

/// The same nodes in the same places, under the same names.
fn assert_same(mut packed: TreeCursor<'_>, mut plain: TreeCursor<'_>, source: &[u8]) {
    loop {
        let (one, other) = (packed.node(), plain.node());
        let shown = || String::from_utf8_lossy(&source[..source.len().min(2_000)]);
        assert_eq!(one.range(), other.range(), "{}", shown());
        assert_eq!(
            (one.kind_id(), one.kind(), one.grammar_id(), one.parse_state(), packed.field_name()),
            (
                other.kind_id(),
                other.kind(),
                other.grammar_id(),
                other.parse_state(),
                plain.field_name()
            ),
            "{}",
            shown()
        );
        assert_eq!(
            (one.is_named(), one.is_extra(), one.is_missing(), one.has_error()),
            (other.is_named(), other.is_extra(), other.is_missing(), other.has_error()),
            "{}",
            shown()
        );
        let down = packed.goto_first_child();
        assert_eq!(down, plain.goto_first_child(), "{}", shown());
        if down {
            continue;
        }
        loop {
            let next = packed.goto_next_sibling();
            assert_eq!(next, plain.goto_next_sibling(), "{}", shown());
            if next {
                break;
            }
            let up = packed.goto_parent();
            assert_eq!(up, plain.goto_parent(), "{}", shown());
            if !up {
                return;
            }
        }
    }
}

/// A source of random numbers that is the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }

    /// `source` with a few stretches left out, doubled, or put elsewhere.
    fn vary(&mut self, source: &[u8]) -> Vec<u8> {
        let mut varied = source.to_vec();
        for _ in 0..=self.below(4) {
            let start = self.below(varied.len());
            let end = varied.len().min(start + 1 + self.below(80));
            let stretch: Vec<_> = varied.drain(start..end).collect();
            for _ in 0..self.below(3) {
                let at = self.below(varied.len() + 1);
                varied.splice(at..at, stretch.iter().copied());
            }
        }
        varied
    }

    /// Words of the language, in any order.
    fn babble(&mut self, language: &Language) -> Vec<u8> {
        let words: Vec<&str> = (0..language.node_kind_count())
            .filter_map(|id| u16::try_from(id).ok())
            .filter(|id| !language.node_kind_is_named(*id))
            .filter_map(|id| language.node_kind_for_id(id))
            .chain([
                "name",
                "Other",
                "1",
                "2.5",
                "\"text\"",
                "'c'",
                "\n",
                "\n    ",
                "// note\n",
                "# note\n",
            ])
            .collect();
        let count = self.below(200);
        let words: Vec<_> = (0..count).map(|_| words[self.below(words.len())]).collect();
        words.join(if self.below(4) == 0 { "" } else { " " }).into_bytes()
    }
}

/// For machines that have no sources of a language.
fn sample(name: &str) -> &'static str {
    match name {
        "c" => {
            "#include <a.h>\nstatic int f(struct s *p, int n) {\n  for (int i = 0; i < n; i++) p->x[i] += i ? 1 : 2;\n  return (int)sizeof(*p);\n}\n"
        }
        "css" => {
            "@media print { a:hover > b.c, #d::before { color: rgb(1, 2, 3) !important; margin: 0 auto } }\n"
        }
        "go" => {
            "package a\n\nimport \"fmt\"\n\ntype T[K comparable] struct {\n\tm map[K]int `json:\"m\"`\n}\n\nfunc (t *T[K]) F(xs ...K) (n int, err error) {\n\tfor _, x := range xs {\n\t\tselect {\n\t\tcase <-c:\n\t\t\tn++\n\t\tdefault:\n\t\t\tgo func() { fmt.Println(x) }()\n\t\t}\n\t}\n\treturn\n}\n"
        }
        "html" => {
            "<!DOCTYPE html><ul><li>a<li class=b>c &amp; d</ul><script>if (a < b) c()</script><p>e<br></p>\n"
        }
        "java" => {
            "package a.b;\n\nimport java.util.*;\n\n@Deprecated\npublic sealed class C<T extends D> implements E permits F {\n  record R(int a, String... b) {}\n  static final int[] X = {1, 2};\n  public <U> U m(List<? super T> l) throws IOException {\n    return switch (l.size()) { case 0 -> null; default -> { for (var x : l) { try { n(x::o, y -> y + 1); } catch (A | B e) { throw e; } } yield null; } };\n  }\n}\n"
        }
        "json" => "{\"a\": [1, -2.5e3, true, null, \"b\\n\\u00e9\"], \"c\": {}}\n",
        "python" => {
            "@d(1)\nasync def f(a, *b, c: int = 1, **e) -> list[int]:\n    \"\"\"Text\"\"\"\n    with g() as h, i:\n        match a:\n            case {\"x\": [1, *_]} if b: yield f\"{a!r:>{c}}\"\n    return [x async for x in y if not x] or (lambda z: z)\n"
        }
        "rust" => {
            "#[derive(Debug)]\npub(crate) enum E<'a, T: Clone + 'a> where T: Copy { A(&'a T), B { c: u8 } }\n\nimpl<'a, T> E<'a, T> {\n    /// Text\n    fn f(&self) -> Option<impl Iterator<Item = u8>> {\n        let r = r#\"raw \"# \"#; if let Self::B { c, .. } = self && *c > 1 { m!(c => [x; 2]); }\n        Some(loop { break (0..=3).map(|x: u8| x as _) })\n    }\n}\n"
        }
        "toml" => {
            "a = 1\n[b.\"c\"]\nd = [1.5, 0x1f, 1979-05-27T07:32:00Z]\ne = { f = '''g''', h = \"i\" }\n[[j]]\n"
        }
        "tsx" => {
            "import type { A } from './a';\nexport abstract class B<T extends A> extends C implements D {\n  @e() private readonly f?: T[keyof T] = <div key={1} {...g}>text {h ?? `i${j}`}</div>;\n  async *k(this: B<T>): AsyncGenerator<infer2> { yield* (await l)!.m?.[0] satisfies N; }\n}\nenum O { P = 1 }\nlet q = /r[/]/g, s = (t): t is u => t < 1;\n"
        }
        "yaml" => {
            "%YAML 1.2\n---\na: &b\n  - c\n  - {d: [1, 'e', \"f\\n\"], ? g : h}\n  - !!str |\n    text\n      more\n  - >-\n    folded\ni: *b # note\n...\n"
        }
        _ => "",
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "how many there were depends on the machine")]
fn every_source_has_the_same_tree() {
    let all = sources::all();
    for (packed, plain, extensions) in pairs() {
        let grammar = packed.unpack();
        let mut dice = Dice(0x5eed);
        let sample = sample(packed.name()).as_bytes();
        assert!(!sample.is_empty(), "{}: no sample", packed.name());
        check(&grammar, &plain, sample);
        (0..300).for_each(|_| check(&grammar, &plain, &dice.vary(sample)));
        (0..300).for_each(|_| check(&grammar, &plain, &dice.babble(&plain)));
        let mut count = 0;
        for source in sources::files(&all, extensions).filter_map(|path| fs::read(path).ok()) {
            check(&grammar, &plain, &source);
            if source.len() < 10_000 {
                check(&grammar, &plain, &dice.vary(&source));
            }
            count += 1;
        }
        println!("{}: {count} real sources", packed.name());
    }
}
