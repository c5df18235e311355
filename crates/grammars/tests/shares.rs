//! A grammar stays as long as anything that was made with it, and no longer.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;

use grammars::{Grammar, PackedGrammar};

fn sexp(grammar: &Arc<Grammar>, source: &str) -> String {
    let tree = grammar.parse(source.as_bytes(), &mut |_| ControlFlow::Continue(()));
    tree.expect("a tree").root_node().to_sexp()
}

const SOURCES: [(&PackedGrammar, &str); 3] = [
    (&grammars::PYTHON, "def f(a):\n    return [a, 'b'"),
    (&grammars::TOML, "[a]\nb = '''c'''\n"),
    (&grammars::JSON, "{\"a\": [1, null]}"),
];

#[test]
fn a_tree_keeps_it() {
    let grammar = grammars::RUST.unpack();
    let share = Arc::downgrade(&grammar);
    let source = b"fn one() {}\nfn two() {}\n";
    let tree = grammar.parse(source, &mut |_| ControlFlow::Continue(())).expect("a tree");
    drop(grammar);
    assert_eq!(tree.root_node().child(0).map(|node| node.kind()), Some("function_item"));
    let function = tree.grammar().named("function_item").expect("a kind of node");
    assert_eq!(tree.root_node().child(1).map(|node| node.kind_id()), Some(function));
    assert!(share.upgrade().is_some());
    drop(tree);
    assert!(share.upgrade().is_none());
}

#[test]
fn a_parse_that_is_stopped_leaves_nothing() {
    let grammar = grammars::C.unpack();
    let source = "int a;\n".repeat(100_000);
    let tree = grammar.parse(source.as_bytes(), &mut |_| ControlFlow::Break(()));
    assert!(tree.is_none());
    assert_eq!(Arc::strong_count(&grammar), 1);
}

#[test]
fn it_is_unpacked_and_dropped_a_thousand_times_by_several_threads() {
    let first = SOURCES.map(|(packed, source)| sexp(&packed.unpack(), source));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..250 {
                    assert_eq!(
                        SOURCES.map(|(packed, source)| sexp(&packed.unpack(), source)),
                        first
                    );
                }
            });
        }
    });
}

#[test]
fn threads_share_one() {
    let grammar = grammars::PYTHON.unpack();
    let source = "class C:\n    def f(self): return self.g(1)\n".repeat(50);
    let first = sexp(&grammar, &source);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| assert_eq!(sexp(&grammar, &source), first)));
        }
    });
}
