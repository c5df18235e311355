//! Declarations in headers of C and C++, and the language of a header.

use code::syntax::{errors, new_errors};

use super::{named, outline};

/// `text` is a header in which each of these is declared.
fn check(path: &str, text: &str, expected: &[&str]) {
    assert_eq!(named(path, text), expected, "{text}");
}

#[test]
fn whatever_c_declares_is_a_part() {
    for (text, expected) in [
        ("int f(int);", &["function f"][..]),
        ("char *f(void);", &["function f"]),
        ("char **f(void);", &["function f"]),
        ("void (*f(int a))(int);", &["function f"]),
        ("int (f)(int);", &["function f"]),
        ("int a(void), b, *c(int);", &["function a", "constant b", "function c"]),
        ("extern int v;", &["constant v"]),
        ("int v;", &["constant v"]),
        ("int v[10];", &["constant v"]),
        ("int (*v)(int);", &["constant v"]),
        ("int (*v[3])(int) = { 0 };", &["constant v"]),
        ("static int v = 3;", &["constant v"]),
        ("struct s *v;", &["constant v"]),
        ("struct s { int a; } v;", &["constant v", "struct s", "field s/a"]),
        ("struct { int a; } v;", &["constant v", "field v/a"]),
        ("typedef int f(int);", &["type f"]),
        ("struct s;", &[]),
    ] {
        check("a.h", text, expected);
        check("a.hpp", text, expected);
    }
}

#[test]
fn conditions_around_a_declaration_do_not_hide_it() {
    let declared = "int f(int);\nchar *g(void);\nstatic int w = 3;\n";
    let expected = ["function f", "function g", "constant w"];
    for (before, behind) in [
        ("", ""),
        ("#ifdef A\n", "#endif\n"),
        ("#if A\n", "#endif\n"),
        ("#if A\n#else\n", "#endif\n"),
        ("#if A\n#elif B\n", "#endif\n"),
        ("#ifndef A\n#ifdef B\n#if C\n", "#endif\n#endif\n#endif\n"),
        ("extern \"C\" {\n", "}\n"),
        ("#ifdef A\nextern \"C\" {\n", "}\n#endif\n"),
        ("#ifdef __cplusplus\nextern \"C\" {\n#endif\n", "#ifdef __cplusplus\n}\n#endif\n"),
        (
            "#ifndef G_H\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n",
            "#ifdef __cplusplus\n}\n#endif\n#endif\n",
        ),
    ] {
        let text = format!("{before}{declared}{behind}");
        check("a.hpp", &text, &expected);
        check("a.h", &text, &expected);
    }
    check("a.h", "#ifndef G_H\n#define G_H\nint f(int);\n#endif\n", &["macro G_H", "function f"]);
}

#[test]
fn what_is_declared_in_a_function_is_no_part() {
    for text in [
        "int f(void) { int a; int b = 1; int g(int); if (b) { char *c; } }",
        "int f(void)\n{\n#ifdef A\n    int a;\n#else\n    int b = 1;\n#endif\n}\n",
        "int f(void) { for (int a = 0; a < 1; a++) { switch (a) { case 1: { int b; } } } }",
    ] {
        check("a.h", text, &["function f"]);
        check("a.hpp", text, &["function f"]);
    }
    check("a.h", "int f(a, b) int a; char *b; { return a; }", &["function f"]);
    check("a.hpp", "auto f = [](int a) { int b = a; return b; };", &["constant f"]);
    check("a.hpp", "class A { friend void f(int); };", &["class A"]);
}

#[test]
fn what_is_not_understood_names_nothing() {
    // A macro hides what follows: a namespace seems to be a function, and a macro a variable.
    check(
        "a.hpp",
        "A_BEGIN_NAMESPACE\nnamespace detail\n{\ntemplate<class T> int f(T a);\nint v = 1;\n}\n",
        &["module detail", "function detail/f", "constant detail/v"],
    );
    check(
        "a.hpp",
        "class A_EXPORT B {\n public:\n  int g();\n  int v;\n};\n",
        &["class B", "method B/g", "field B/v"],
    );
    check(
        "a.h",
        "void f(int a)\n{\n  int j = 2;\n#ifdef A\n  if (a) {\n#else\n  if (!a) {\n#endif\n    int k = 1;\n  }\n}\n\nint v = 1;\n",
        &["function f", "constant v"],
    );
    check(
        "a.h",
        "#define int long\nstruct a { int using; };\n",
        &["macro int", "struct a", "field a/using"],
    );
    check("a.hpp", "A_END_EXPORT\nA_END_NAMESPACE\n", &[]);
    check("a.h", "JEMALLOC_EXPORT int\nf(int a) {\n  return a;\n}\n", &["function f"]);
}

#[test]
fn whatever_cpp_declares_is_a_part() {
    for (text, expected) in [
        ("int& f(int);", &["function f"][..]),
        ("int&& f(int);", &["function f"]),
        ("const std::string& f();", &["function f"]),
        ("int **f();", &["function f"]),
        ("template<class T> T f(T);", &["function f"]),
        ("template<class T> T* f(T);", &["function f"]),
        ("template<class T> T& f(T);", &["function f"]),
        ("template<class T> constexpr bool v = true;", &["constant v"]),
        ("extern \"C\" int f(void);", &["function f"]),
        ("extern \"C\" int f(void) { return 1; }", &["function f"]),
        ("namespace n { int& f(); extern int v; }", &["module n", "function n/f", "constant n/v"]),
        (
            "struct s { int **f(); int& g(); int v; int (*w)(int); };",
            &["struct s", "method s/f", "method s/g", "field s/v", "field s/w"],
        ),
        (
            "struct s {\n#ifdef A\n  s(int);\n  int& f();\n#endif\n};",
            &["struct s", "method s/s", "method s/f"],
        ),
        ("struct A::B::C { int f(); };", &["struct A/B/C", "method A/B/C/f"]),
    ] {
        check("a.hpp", text, expected);
    }
    let linked = outline("a.hpp", "extern \"C\" int f(void);\n");
    assert_eq!(linked.parts[0].signature, "extern \"C\" int f(void)");
}

#[test]
fn a_header_is_c_unless_it_plainly_is_cpp() {
    for (text, expected) in [
        ("int a(void);\n", "c"),
        ("/* A class of\nclass is no word here, nor a template\nof one */\nint class;\n", "c"),
        ("#ifdef __cplusplus\nextern \"C\" {\n#endif\nint a(void);\n", "c"),
        ("/* using the old table; */\nint a;\n", "c"),
        ("/*\n using the old table;\n class and device;\n namespace a {\n*/\nint a;\n", "c"),
        ("// class A;\nint a; // std::b\n", "c"),
        ("// goes on \\\nclass A;\nint a;\n", "c"),
        ("char *a = \"class A; std::b \\\" c::d\";\n", "c"),
        ("#define A(b) class b; \\\n  class c;\nint a;\n", "c"),
        ("extern struct class block_class;\nstruct class { int a; };\n", "c"),
        ("struct a { unsigned private : 1; int virtual; };\n", "c"),
        ("[[gnu::packed]] int a;\n", "c"),
        ("static inline void a(void) { __asm__(\"b\" :: \"r\"(c) : \"memory\"); }\n", "c"),
        ("int operator;\nint namespace, template;\n", "c"),
        ("", "c"),
        ("/*", "c"),
        ("namespace a {\n}\n", "cpp"),
        ("namespace a\n{\n}\n", "cpp"),
        ("inline namespace a::b {\n}\n", "cpp"),
        ("class A;\n", "cpp"),
        ("class Foo : public Bar\n{\n};\n", "cpp"),
        ("class A_EXPORT Foo\n  : public Bar {\n};\n", "cpp"),
        ("/* about it */ class A final {};\n", "cpp"),
        ("struct A {\n  private:\n  int a;\n};\n", "cpp"),
        ("template<class T>\nT a(T b);\n", "cpp"),
        ("  using A = int;\r\n", "cpp"),
        ("using namespace a;\n", "cpp"),
        ("enum class Color { Red };\n", "cpp"),
        ("enum class Color : int\n{ Red };\n", "cpp"),
        ("struct A { int a; };\nbool operator==(A a, A b);\n", "cpp"),
        ("struct A { int operator()(int a); };\n", "cpp"),
        ("struct A { A &operator<<=(int a); };\n", "cpp"),
        ("struct A { operator bool() const; };\n", "cpp"),
        ("void a(std::string b);\n", "cpp"),
        ("struct A { virtual ~A(); };\n", "cpp"),
        ("struct A { virtual void a() = 0; };\n", "cpp"),
    ] {
        assert_eq!(outline("a.h", text).language, Some(expected), "{text}");
    }
    assert_eq!(outline("a.c", "class A;\n").language, Some("c"));
    assert_eq!(errors("a.h", "class A final : B {\n};\n", &|| false), Some(Vec::new()));
}

#[test]
fn a_change_is_judged_in_one_language() {
    fn check(before: &str, after: &str, expected: usize) {
        let found = new_errors("a.h", before, after, &|| false).map(|errors| errors.len());
        assert_eq!(found, Some(expected), "{before:?} -> {after:?}");
    }
    let c = "int a(void) { int class = 1, new = class; return *class + new; }\n";
    check(c, &format!("/*\nclass A;\n*/\n{c}"), 0);
    // It becomes one of the other language.
    check("int a;\n", "int a;\nclass A { int b; };\n", 0);
    check("int a;\nclass A { int b; };\n", "int a;\n", 0);
    // What is left of the other one does not show that it is one.
    check("class A;\n", "struct A;\nint &f(A &a);\n", 0);
    // It looks like one, but only in C it has no errors.
    check(c, &format!("{c}class A;\n"), 0);
    check("int a;\nclass A { int b; };\n", "int a;\nclass A { int b };\n", 1);
}
