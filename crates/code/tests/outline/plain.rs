//! Parts in a text without a grammar.

use expect_test::{Expect, expect};

use super::{outline, shown};
use code::outline::OutlineOrigin;

fn check(path: &str, text: &str, expected: &Expect) {
    let outline = outline(path, text);
    assert_eq!(outline.origin, OutlineOrigin::Guessed);
    expected.assert_eq(&shown(&outline));
}

#[test]
fn shell() {
    check(
        "a.txt",
        "#!/bin/sh\n# Says so.\nsay() {\n  echo \"$1\"\n}\nfunction other {\n  if true; then\n    say x\n  fi\n}\nsay it\n",
        &expect![[r#"
            1-4 function say: say() // Says so.
            5-9 function other: function other
        "#]],
    );
}

#[test]
fn cpp() {
    check(
        "a.txt",
        r#"#define MOST 3
namespace walk {
template <typename T>
class EXPORT Walker final : public Base<T> {
public:
    explicit Walker(int a) : a_(a) {}
    virtual ~Walker() {}
    std::vector<int> walk(const std::string& root,
                          bool deep) const override
    {
        if (deep) { return {}; }
        for (int i = 0; i < 3; i++) {
            call(i);
        }
        return walk(root, false);
    }
};
class Forward;
enum class PartKind { One };
typedef unsigned long size;
typedef int (*callback)(int);
}
int Walker::count() const {
    return 1;
}
"#,
        &expect![[r#"
            0-0 macro MOST: #define MOST 3
            1-21 module walk: namespace walk
            3-16 class walk/Walker: class EXPORT Walker final : public Base<T>
            5-5 method walk/Walker/Walker: explicit Walker(int a) : a_(a)
            6-6 method walk/Walker/~Walker: virtual ~Walker()
            7-15 method walk/Walker/walk: std::vector<int> walk(const std::string& root
            18-18 enum walk/PartKind: enum class PartKind
            19-19 type walk/size: typedef unsigned long size
            20-20 type walk/callback: typedef int (*callback)(int)
            22-24 function count: int Walker::count() const
        "#]],
    );
}

#[test]
fn ruby() {
    check(
        "a.txt",
        "module Walk\n  # A walker.\n  class Walker < Base\n    def self.all\n      []\n    end\n\n    def empty?\n      true\n    end\n  end\nend\n",
        &expect![[r#"
            0-11 module Walk: module Walk
            1-10 class Walk/Walker: class Walker < Base // A walker.
            3-5 method Walk/Walker/all: def self.all
            7-9 method Walk/Walker/empty?: def empty?
        "#]],
    );
}

#[test]
fn others() {
    check(
        "a.txt",
        "<?php\nabstract class A {\n    public static function &make(int $a): self\n    {\n    }\n}\n",
        &expect![[r#"
        1-5 class A: abstract class A
        2-4 method A/make: public static function &make(int $a): self
    "#]],
    );
    check(
        "a.txt",
        "data class A(val a: Int)\ninternal fun <T> second(a: List<T>): T = a[1]\nobject Single {\n}\n",
        &expect![[r#"
        0-0 class A: data class A(val a: Int)
        1-1 function second: internal fun <T> second(a: List<T>): T = a[1]
        2-3 class Single: object Single
    "#]],
    );
    check(
        "a.lua",
        "local M = {}\nfunction M.open(a)\nend\nM.close = function(a)\nend\n",
        &expect![[r#"
        1-2 function open: function M.open(a)
        3-4 function close: M.close = function(a)
    "#]],
    );
    check(
        "a.txt",
        "public protocol Store {\n    func read() -> Int\n}\n",
        &expect![[r#"
        0-2 interface Store: public protocol Store
        1-1 method Store/read: func read() -> Int
    "#]],
    );
    check(
        "a.ex",
        "defmodule Walk do\n  def walk(a) do\n    a\n  end\nend\n",
        &expect![[r#"
        0-4 module Walk: defmodule Walk do
        1-3 function Walk/walk: def walk(a) do
    "#]],
    );
    check(
        "a.proto",
        "message Point {\n  int32 x = 1;\n}\nservice Walk {\n  rpc Go (Point) returns (Point);\n}\n",
        &expect![[r#"
        0-2 struct Point: message Point
        3-5 interface Walk: service Walk
        4-4 method Walk/Go: rpc Go (Point) returns (Point)
    "#]],
    );
    check(
        "a.txt",
        "public sealed class A\n{\n    public async Task<int> Walk(string root)\n    {\n        return 1;\n    }\n}\n",
        &expect![[r#"
        0-6 class A: public sealed class A
        2-5 method A/Walk: public async Task<int> Walk(string root)
    "#]],
    );
}

#[test]
fn sentences_are_no_code() {
    check(
        "a.md",
        "The class of all\ntype of thing\nfunction words are short\nif (a) b\ncall(a) and {\n",
        &expect![""],
    );
}
