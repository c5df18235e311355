//! The trees of both, node by node.

use std::env;
use std::fs;
use std::ops::ControlFlow;
use std::sync::Arc;

use grammars::Grammar;
use tree_sitter::{Language, Parser, TreeCursor};

use super::dice::Dice;
use super::{pairs, sources};

/// The tree of `source` by the packed parser, and by the plain one.
fn check(grammar: &Arc<Grammar>, plain: &Language, source: &[u8]) {
    let packed = grammar.parse(source, &mut |_| ControlFlow::Continue(())).expect("a tree");
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

impl Dice {
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

/// The scanner of Ruby, packed or not, cannot keep a long word behind `<<`, and a quoted one goes on to the next quote,
/// wherever that is. Such texts are not parsed at all.
fn ends_the_process(name: &str, source: &[u8]) -> bool {
    let is_long = |behind: &[u8]| {
        let word = behind.strip_prefix(b"-").or_else(|| behind.strip_prefix(b"~"));
        let Some((quote @ (b'\'' | b'"' | b'`'), word)) = word.unwrap_or(behind).split_first()
        else {
            return false;
        };
        !word.iter().take(256).any(|byte| byte == quote)
    };
    let marks = (0..source.len()).filter(|at| source[*at..].starts_with(b"<<"));
    name == "ruby" && marks.into_iter().any(|at| is_long(&source[at + 2..]))
}

/// For machines that have no sources of a language.
fn sample(name: &str) -> &'static str {
    match name {
        "bash" => {
            "#!/bin/bash\nset -euo pipefail\nfunction f() {\n  local a=\"${1:-x}\" b=(1 2 \"$@\")\n  for i in \"${b[@]}\"; do [[ $i =~ ^[a-z]+$ && -f $a ]] || continue; done\n  case $a in x|y) echo `g`;; *) (( n += 1 ));; esac\n  cat <<-EOF | tr a b >&2\n\tText $(h <(i)) ${j##*/}\n\tEOF\n}\nwhile read -r k; do :; done < \"$l\"\n"
        }
        "c" => {
            "#include <a.h>\nstatic int f(struct s *p, int n) {\n  for (int i = 0; i < n; i++) p->x[i] += i ? 1 : 2;\n  return (int)sizeof(*p);\n}\n"
        }
        "cpp" => {
            "#include <a>\nnamespace n::m {\ntemplate <typename T, int N = 2> class A final : public B<T>, virtual C {\npublic:\n  explicit A(int x) noexcept : y{x} {}\n  ~A() override = default;\n  auto operator<=>(const A &) const = default;\n  static constexpr auto s = R\"d(raw \" )\")d\";\nprivate:\n  std::vector<std::pair<int, T>> y;\n};\nenum class E : char { P, Q = 'q' };\ntemplate <> int f<E>(E &&e) requires C<E> { try { return [=, &e](auto... z) mutable -> int { return (z + ...); }(1); } catch (const X &) { throw; } }\n}\n"
        }
        "csharp" => {
            "using System;\nnamespace A.B;\n[Serializable]\npublic sealed partial record C<T>(int X, string? Y = null) : D<T>, IE where T : class, new()\n{\n    private readonly Dictionary<string, List<int>> _m = new() { [\"a\"] = [1, 2] };\n    public event EventHandler? Changed;\n    public int P { get; init; } = 3;\n    public async Task<int> F(ref int a, params object[] b) => await G(x => x switch { > 1 and < 5 => $\"t{x:N2}\", null => @\"v\"\"w\", _ => \"\"\"raw\"\"\" });\n    public static C<T> operator +(C<T> l, C<T> r) { if (l is { X: 1 } q) { using var s = H(); foreach (var i in r) yield return i; } return l!; }\n}\n#if DEBUG\nenum E { F = 1, G }\n#endif\n"
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
        "javascript" => {
            "import a, { b as c } from './d.js';\nexport default class E extends F {\n  static #g = 1;\n  get [h]() { return `t${this?.i ?? 2}`; }\n  async *j({ k = 1, ...l }, [m]) { for await (const n of o) yield n ** 2; }\n}\nconst p = /q[/]r/giu, s = (t) => <div u={v} {...w}>x {y}</div>;\nlabel: while (a < b) { try { continue label } catch { break } }\n"
        }
        "json" => "{\"a\": [1, -2.5e3, true, null, \"b\\n\\u00e9\"], \"c\": {}}\n",
        "kotlin" => {
            "package a.b\n\nimport c.d as e\n\n@Suppress(\"x\")\nsealed class F<out T : Any>(private val g: Int = 1, vararg h: String) : I(), J by k {\n    companion object { const val L = 0x1F }\n    val m: String by lazy { \"t${g + 1} $h\" }\n    var n: Int\n        get() = field\n        set(value) { field = value }\n    suspend inline fun <reified U> o(crossinline p: (Int) -> U?): List<U> where U : T =\n        when (g) { in 1..3, is Int -> listOf(); else -> q?.r!!.let { s -> s as U } }\n}\nenum class V { W, X { override fun y() = 1 } }\nfun String.z() = \"\"\"raw $this\"\"\"\n"
        }
        "php" => {
            "<h1><?= $t ?></h1>\n<?php\ndeclare(strict_types=1);\nnamespace A\\B;\nuse C\\{D, E as F};\n#[G(1)]\nfinal class H extends I implements J, K {\n    use L;\n    public const M = 1;\n    private ?int $n = null;\n    public function __construct(protected readonly array|string $o = []) {}\n    public static function p(int &...$q): ?static {\n        $r = <<<X\n          text {$s->t[1]} ${u}\n          X;\n        return match (true) { $a <=> $b, 2 => fn($c) => $c ?? throw new D(), default => self::M };\n    }\n}\nenum N: string { case O = 'o'; }\nfunction &v() { foreach (w() as $k => [$x, 'y' => $y]) { echo \"z$k\", PHP_EOL; } }\n?>\nrest\n"
        }
        "python" => {
            "@d(1)\nasync def f(a, *b, c: int = 1, **e) -> list[int]:\n    \"\"\"Text\"\"\"\n    with g() as h, i:\n        match a:\n            case {\"x\": [1, *_]} if b: yield f\"{a!r:>{c}}\"\n    return [x async for x in y if not x] or (lambda z: z)\n"
        }
        "ruby" => {
            "# frozen_string_literal: true\nmodule A\n  class B < C::D\n    attr_reader :e, :f\n    G = %w[h i].freeze\n    def self.j(k, *l, m: 1, **n, &o)\n      @p ||= \"q#{r + 1}\" if s? && t !~ /u\\/v/i\n      w = <<~TEXT, 2\n        text #{x}\n      TEXT\n      k.map { |y, (z, _)| y&.a! } rescue nil\n    end\n    private def b = case c in { d: Integer => e, **nil } then e end\n  end\nend\nputs :f, ?g, -1, 2r, __method__ unless h\n"
        }
        "rust" => {
            "#[derive(Debug)]\npub(crate) enum E<'a, T: Clone + 'a> where T: Copy { A(&'a T), B { c: u8 } }\n\nimpl<'a, T> E<'a, T> {\n    /// Text\n    fn f(&self) -> Option<impl Iterator<Item = u8>> {\n        let r = r#\"raw \"# \"#; if let Self::B { c, .. } = self && *c > 1 { m!(c => [x; 2]); }\n        Some(loop { break (0..=3).map(|x: u8| x as _) })\n    }\n}\n"
        }
        "swift" => {
            "import A\n\n@available(iOS 13, *)\npublic final class B<T: C>: D where T.E == Int {\n    private(set) lazy var f: [String: T?] = [:]\n    static let g = #\"raw \"h\" \\#(i)\"#\n    var j: Int { get async throws { try await k() } }\n    init?(_ l: inout Int, m: @escaping (Int) -> Void = { _ in }) { guard let n = l as? Int, n > 1 else { return nil } }\n    func o<U>(p: U...) -> some D { switch p { case .q(let r) where r is Int: return s!.t?[0] ?? u; default: fallthrough } }\n}\nenum V: String { case w = \"x\", y }\nprotocol Z { associatedtype A; mutating func b() -> Self }\nextension B { subscript(i: Int) -> Int { i } }\nfunc += (l: inout B, r: B) { #if DEBUG\nprint(\"t \\(l)\")\n#endif\n}\n"
        }
        "toml" => {
            "a = 1\n[b.\"c\"]\nd = [1.5, 0x1f, 1979-05-27T07:32:00Z]\ne = { f = '''g''', h = \"i\" }\n[[j]]\n"
        }
        "tsx" => {
            "import type { A } from './a';\nexport abstract class B<T extends A> extends C implements D {\n  @e() private readonly f?: T[keyof T] = <div key={1} {...g}>text {h ?? `i${j}`}</div>;\n  async *k(this: B<T>): AsyncGenerator<infer2> { yield* (await l)!.m?.[0] satisfies N; }\n}\nenum O { P = 1 }\nlet q = /r[/]/g, s = (t): t is u => t < 1;\n"
        }
        "typescript" => {
            "import type { A } from './a';\nexport abstract class B<T extends A> extends C implements D {\n  @e() private readonly f?: T[keyof T] = <any>g;\n  async *k(this: B<T>): AsyncGenerator<infer2> { yield* (await l)!.m?.[0] satisfies N; }\n}\nenum O { P = 1 }\ndeclare module 'q' { export = r }\ntype S<T> = T extends [infer U, ...unknown[]] ? `v${string}` : { readonly [K in keyof T]-?: T[K] };\nlet w = /x[/]/g, y = <Z,>(t): t is u => t < 1;\nfunction assertIt(a: unknown): asserts a is string;\n"
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
        let may_check = |source: &[u8]| !ends_the_process(packed.name(), source);
        for _ in 0..300 {
            let texts = [dice.vary(sample), dice.babble(&plain)];
            texts.iter().filter(|text| may_check(text)).for_each(|text| {
                check(&grammar, &plain, text);
            });
        }
        let mut count = 0;
        for source in sources::files(&all, extensions).filter_map(|path| fs::read(path).ok()) {
            check(&grammar, &plain, &source);
            let varied = dice.vary(&source);
            if source.len() < 10_000 && may_check(&varied) {
                check(&grammar, &plain, &varied);
            }
            count += 1;
        }
        println!("{}: {count} real sources", packed.name());
        // Who names folders wants to be sure.
        assert!(count >= 100 || env::var_os("SOURCES").is_none(), "{}", packed.name());
    }
}
