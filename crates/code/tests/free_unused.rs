//! Tables that are freed, and unpacked again when they are needed. A test program of its own, since all tests of a
//! process share them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use code::outline::{Outline, outline};

const TEXTS: [(&str, &str); 5] = [
    ("a.rs", "/// Text\nstruct S { a: u8 }\nimpl S { fn f(&self) {} }\n"),
    ("a.py", "class C:\n    def f(self):\n        '''Text'''\n"),
    ("a.ts", "export class C<T> { f(): T { return this.g as T } }\n"),
    ("a.yaml", "a:\n  b: [1, 2]\nc: d\n"),
    ("a.json", "{\"a\": {\"b\": 1}}\n"),
];

fn outlines() -> Vec<Outline> {
    TEXTS.iter().map(|(path, text)| outline(path, text, &|| false)).collect()
}

#[test]
fn unused_tables_are_freed_and_unpacked_again() {
    assert_eq!(code::free_unused(), 0, "nothing was loaded yet");
    let first = outlines();
    assert!(first.iter().all(|outline| outline.origin == code::outline::OutlineOrigin::Parsed));
    assert_eq!(code::free_unused(), TEXTS.len());
    assert_eq!(code::free_unused(), 0, "freed already");
    assert_eq!(outlines(), first);

    // Tables in use stay.
    let in_use = code::language::of_path("a.rs").expect("a language").loaded();
    assert_eq!(code::free_unused(), TEXTS.len() - 1);
    drop(in_use);
    assert_eq!(code::free_unused(), 1);

    // Whoever comes in between finds them there, or unpacks them.
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let giving = scope.spawn(|| {
            let mut given = 0;
            while !over.load(Ordering::Relaxed) {
                given += code::free_unused();
            }
            given
        });
        let readers = [(); 4].map(|()| {
            scope.spawn(|| {
                for round in 0..250 {
                    for (path, text) in TEXTS {
                        assert_eq!(code::syntax::errors(path, text, &|| false), Some(Vec::new()));
                    }
                    // To make what they need takes long.
                    if round % 50 == 0 {
                        assert_eq!(outlines(), first);
                    }
                }
            })
        });
        let read = readers.map(thread::ScopedJoinHandle::join);
        over.store(true, Ordering::Relaxed);
        assert!(read.iter().all(Result::is_ok));
        assert!(giving.join().expect("no panic") > 0);
    });
}
