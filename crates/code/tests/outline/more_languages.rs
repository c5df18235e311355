//! Parts in each of the other languages.

use expect_test::expect;

use super::languages::check;

#[test]
fn cpp() {
    check(
        "a.cpp",
        r##"#include <vector>
#define MOST 3

namespace walk::inner {

// A point.
template <typename T>
class Point final : public Base<T> {
public:
    explicit Point(int x) : x_{x} {}
    ~Point() override;
    Point &operator=(const Point &other) = default;
    bool operator==(const Point &) const;
    operator bool() const { return true; }
    explicit operator int() const;
    static constexpr int kMost = 3;
    const T &value() const;
    T *pointer();
    void (*call)(int);
    using Item = T;
    enum class PartKind : char { One, Two = 2 };
    template <typename U> void each(U &&f) { f(x_); }
private:
    int x_, *y_;
};

struct Box { int width = 1; };
union Raw { char c; };
enum Color { RED };

int declared(int a);
static const int table[] = {1, 2};

/** Walks. */
template <typename T>
const T &Point<T>::value() const {
    auto local = [](int a) { return a; };
    return x_;
}

template <typename T>
concept Small = sizeof(T) < 8;

template <> void swap<Box>(Box &a, Box &b) {}
} // namespace walk::inner

void walk::inner::Box::run() noexcept { int local = 1; }
std::vector<int> free_one(std::vector<int> v) { return v; }
extern "C" { int from_c(void); }
typedef struct { int a; } box_t;
"##,
        &expect![[r#"
            1-1 macro MOST: #define MOST 3
            3-44 module walk::inner: namespace walk::inner
            5-24 class walk::inner/Point: template <typename T> class Point final : public Base<T> // A point.
            9-9 method walk::inner/Point/Point: explicit Point(int x) : x_{x}
            10-10 method walk::inner/Point/~Point: ~Point() override
            11-11 method walk::inner/Point/operator=: Point &operator=(const Point &other) = default
            12-12 method walk::inner/Point/operator==: bool operator==(const Point &) const
            13-13 method walk::inner/Point/operator bool: operator bool() const
            14-14 method walk::inner/Point/operator int: explicit operator int() const
            15-15 field walk::inner/Point/kMost: static constexpr int kMost = 3
            16-16 method walk::inner/Point/value: const T &value() const
            17-17 method walk::inner/Point/pointer: T *pointer()
            18-18 field walk::inner/Point/call: void (*call)(int)
            19-19 type walk::inner/Point/Item: using Item = T
            20-20 enum walk::inner/Point/PartKind: enum class PartKind : char
            20-20 constant walk::inner/Point/PartKind/One: One
            20-20 constant walk::inner/Point/PartKind/Two: Two = 2
            21-21 method walk::inner/Point/each: template <typename U> void each(U &&f)
            23-23 field walk::inner/Point/x_: int x_, *y_
            23-23 field walk::inner/Point/y_: int x_, *y_
            26-26 struct walk::inner/Box: struct Box
            26-26 field walk::inner/Box/width: int width = 1
            27-27 struct walk::inner/Raw: union Raw
            27-27 field walk::inner/Raw/c: char c
            28-28 enum walk::inner/Color: enum Color
            28-28 constant walk::inner/Color/RED: RED
            30-30 function walk::inner/declared: int declared(int a)
            31-31 constant walk::inner/table: static const int table[] = {1, 2}
            33-38 method walk::inner/Point/value: template <typename T> const T &Point<T>::value() const // Walks.
            40-41 type walk::inner/Small: template <typename T> concept Small = sizeof(T) < 8
            43-43 function walk::inner/swap: template <> void swap<Box>(Box &a, Box &b)
            46-46 method Box/run: void walk::inner::Box::run() noexcept
            47-47 function free_one: std::vector<int> free_one(std::vector<int> v)
            48-48 function from_c: int from_c(void)
            49-49 type box_t: typedef struct { int a; } box_t
            49-49 field box_t/a: int a
        "#]],
    );
}

#[test]
fn csharp() {
    check(
        "A.cs",
        r##"using System;

namespace Walk.Inner
{
    /// <summary>Walks.</summary>
    [Serializable]
    public sealed class Walker<T> : Base, IStore where T : class
    {
        private const int Most = 3;
        private readonly int _a, _b;
        public event EventHandler Changed;

        // A note.
        public Walker(int a) : base(a) { _a = a; }
        ~Walker() { }

        public string Name { get; private set; } = "a";
        public int Size => _a + _b;
        public int this[int at] { get { return at; } }

        /// Walks deep.
        public async Task<int> WalkAsync(
            string root, bool deep = true)
        {
            int Local(int x) => x + 1;
            return Local(1);
        }

        public static Walker<T> operator +(Walker<T> l, Walker<T> r) => l;
        public static implicit operator int(Walker<T> w) => 1;
    }

    public interface IStore { void Read(); int Size { get; } }
    public record Point(int X, int Y);
    public struct Pair { public int A; }
    public enum PartKind { One, Two = 2 }
    public delegate void Handler(object sender);
}
"##,
        &expect![[r#"
            2-37 module Walk.Inner: namespace Walk.Inner
            4-30 class Walk.Inner/Walker: [Serializable] public sealed class Walker<T> : Base, IStore where T : class // <summary>Walks.</summary>
            8-8 constant Walk.Inner/Walker/Most: private const int Most = 3
            9-9 field Walk.Inner/Walker/_a: private readonly int _a, _b
            9-9 field Walk.Inner/Walker/_b: private readonly int _a, _b
            10-10 field Walk.Inner/Walker/Changed: public event EventHandler Changed
            13-13 method Walk.Inner/Walker/Walker: public Walker(int a) : base(a)
            14-14 method Walk.Inner/Walker/Walker: ~Walker()
            16-16 field Walk.Inner/Walker/Name: public string Name
            17-17 field Walk.Inner/Walker/Size: public int Size
            18-18 method Walk.Inner/Walker/this: public int this[int at]
            20-26 method Walk.Inner/Walker/WalkAsync: public async Task<int> WalkAsync( string root, bool deep = true) // Walks deep.
            24-24 function Walk.Inner/Walker/WalkAsync/Local: int Local(int x)
            28-28 method Walk.Inner/Walker/+: public static Walker<T> operator +(Walker<T> l, Walker<T> r)
            29-29 method Walk.Inner/Walker/int: public static implicit operator int(Walker<T> w)
            32-32 interface Walk.Inner/IStore: public interface IStore
            32-32 method Walk.Inner/IStore/Read: void Read()
            32-32 field Walk.Inner/IStore/Size: int Size
            33-33 class Walk.Inner/Point: public record Point(int X, int Y)
            34-34 struct Walk.Inner/Pair: public struct Pair
            34-34 field Walk.Inner/Pair/A: public int A
            35-35 enum Walk.Inner/PartKind: public enum PartKind
            35-35 constant Walk.Inner/PartKind/One: One
            35-35 constant Walk.Inner/PartKind/Two: Two = 2
            36-36 type Walk.Inner/Handler: public delegate void Handler(object sender)
        "#]],
    );
}

#[test]
fn ruby() {
    check(
        "a.rb",
        r##"require 'set'

# Walks.
# Twice.
module Walk
  MOST = 3

  class Walker < Base
    attr_reader :root, :depth
    include Enumerable

    # Begins.
    def initialize(root, depth: 1)
      @root = root
    end

    def self.open(path) = new(path)

    class << self
      def build; end
    end

    def name=(value)
      local = 1
      @name = <<~TEXT
        def none; end
      TEXT
    end

    def ==(other)
      true
    end

    alias_method :path, :root
    alias size depth

    private def hidden; end
  end

  def helper; end
  Point = Struct.new(:x, :y) do
    def far?; x > 1; end
  end
end

class Walk::Other; end
def top(a, *b, &c); end
task :build do
  puts 1
end
"##,
        &expect![[r#"
            2-43 module Walk: module Walk // Walks. Twice.
            5-5 constant Walk/MOST: MOST = 3
            7-37 class Walk/Walker: class Walker < Base
            8-8 field Walk/Walker/root: attr_reader :root, :depth
            8-8 field Walk/Walker/depth: attr_reader :root, :depth
            11-14 method Walk/Walker/initialize: def initialize(root, depth: 1) // Begins.
            16-16 method Walk/Walker/open: def self.open(path)
            19-19 method Walk/Walker/build: def build; end
            22-27 method Walk/Walker/name=: def name=(value)
            29-31 method Walk/Walker/==: def ==(other)
            33-33 method Walk/Walker/path: alias_method :path, :root
            34-34 method Walk/Walker/size: alias size depth
            36-36 method Walk/Walker/hidden: def hidden; end
            39-39 method Walk/helper: def helper; end
            40-42 class Walk/Point: Point = Struct.new(:x, :y)
            41-41 method Walk/Point/far?: def far?
            45-45 class Walk/Other: class Walk::Other; end
            46-46 function top: def top(a, *b, &c); end
        "#]],
    );
}

#[test]
fn php() {
    check(
        "a.php",
        r##"<?php
declare(strict_types=1);

namespace App\Walk;

use Other\Thing;

const MOST = 3;
define('LEAST', 1);

/**
 * Walks.
 */
#[Attribute]
final class Walker extends Base implements Store
{
    use Helps;

    public const DEEP = 1, WIDE = 2;
    private ?string $name = null;
    protected static $a, $b;

    public function __construct(private readonly array $items = []) {}

    // Steps.
    public static function step(int $a): ?self
    {
        $local = function () { return 1; };
        return null;
    }
    abstract protected function other();
}

interface Store { public function read(string $name): mixed; }
trait Helps { public function help() {} }
enum PartKind: string { case One = 'one'; case Two = 'two'; public function label(): string { return ''; } }
function free(array &$a) { return $a; }
?>
<p>text</p>
"##,
        &expect![[r#"
            3-3 module App\Walk: namespace App\Walk
            7-7 constant MOST: const MOST = 3
            8-8 constant LEAST: define('LEAST', 1)
            10-31 class Walker: #[Attribute] final class Walker extends Base implements Store // Walks.
            18-18 constant Walker/DEEP: public const DEEP = 1, WIDE = 2
            18-18 constant Walker/WIDE: public const DEEP = 1, WIDE = 2
            19-19 field Walker/name: private ?string $name = null
            20-20 field Walker/a: protected static $a, $b
            20-20 field Walker/b: protected static $a, $b
            22-22 method Walker/__construct: public function __construct(private readonly array $items = [])
            22-22 field Walker/__construct/items: private readonly array $items = []
            24-29 method Walker/step: public static function step(int $a): ?self // Steps.
            30-30 method Walker/other: abstract protected function other()
            33-33 interface Store: interface Store
            33-33 method Store/read: public function read(string $name): mixed
            34-34 trait Helps: trait Helps
            34-34 method Helps/help: public function help()
            35-35 enum PartKind: enum PartKind: string
            35-35 constant PartKind/One: case One = 'one'
            35-35 constant PartKind/Two: case Two = 'two'
            35-35 method PartKind/label: public function label(): string
            36-36 function free: function free(array &$a)
        "#]],
    );
}

#[test]
fn bash() {
    check(
        "a.sh",
        r##"#!/usr/bin/env bash
set -e
MOST=3
export NAME="a" OTHER=b
readonly LEAST=1

# Walks.
walk() {
  local root=$1
  inner() { :; }
  cat <<EOF
not() { }
EOF
}

function step {
  echo 1
}
function both() { :; }
if true; then maybe() { :; }; fi
"##,
        &expect![[r#"
            2-2 constant MOST: MOST=3
            3-3 constant NAME: export NAME="a" OTHER=b
            3-3 constant OTHER: export NAME="a" OTHER=b
            4-4 constant LEAST: readonly LEAST=1
            6-13 function walk: walk() // Walks.
            9-9 function walk/inner: inner()
            15-17 function step: function step
            18-18 function both: function both()
            19-19 function maybe: maybe()
        "#]],
    );
}

#[test]
fn kotlin() {
    check(
        "A.kt",
        r##"package walk.inner

import java.io.File

/** Walks. */
@Serializable
data class Walker<T : Any>(val root: String, var depth: Int = 1, other: Int) : Base(other), Store {
    private val name: String by lazy { "a" }
    var size: Int
        get() = 1
        set(value) {}

    constructor(a: Int) : this("a", a, 1) { println(a) }

    // Steps.
    override suspend fun step(a: Int, b: String): List<T> {
        val local = 1
        fun inner() = 2
        return emptyList()
    }

    companion object {
        const val MOST = 3
        fun create() = Walker<Int>("a", 1, 2)
    }
    inner class Deep
}

interface Store {
    fun read(name: String): Int
    val count: Int
}
fun interface Call {
    fun run()
}
sealed interface Shape
enum class PartKind(val n: Int) {
    ONE(1),
    TWO(2) { override fun a() = 1 };
    fun b() = 2
}
object Single : Base() { fun one() {} }
typealias Short<T> = Map<String, T>
const val LEAST = 1
val top = listOf(1)
fun String.twice(): String = this + this
fun <T> List<T>.second(): T = this[1]
annotation class Mark(val name: String)
"##,
        &expect![[r#"
            0-0 module walk.inner: package walk.inner
            4-26 class Walker: @Serializable data class Walker<T : Any>(val root: String, var depth: Int = 1, other: Int) : Base(other), Store // Walks.
            6-6 field Walker/root: val root: String
            6-6 field Walker/depth: var depth: Int = 1
            7-7 field Walker/name: private val name: String by lazy { "a" }
            8-10 field Walker/size: var size: Int get() = 1 set(value) {}
            12-12 method Walker/constructor: constructor(a: Int) : this("a", a, 1)
            14-19 method Walker/step: override suspend fun step(a: Int, b: String): List<T> // Steps.
            17-17 function Walker/step/inner: fun inner()
            22-22 field Walker/MOST: const val MOST = 3
            23-23 method Walker/create: fun create()
            25-25 class Walker/Deep: inner class Deep
            28-31 interface Store: interface Store
            29-29 method Store/read: fun read(name: String): Int
            30-30 field Store/count: val count: Int
            32-34 interface Call: fun interface Call
            33-33 method Call/run: fun run()
            35-35 interface Shape: sealed interface Shape
            36-36 field n: val n: Int
            37-37 constant ONE: ONE(1)
            38-38 function a: override fun a()
            39-39 method PartKind/b: fun b() = 2
            41-41 class Single: object Single : Base()
            42-42 type Short: typealias Short<T> = Map<String, T>
            45-45 function twice: fun String.twice(): String = this + this
            46-46 function List: fun <T> List<T>.second(): T = this[1]
        "#]],
    );
}

#[test]
fn swift() {
    check(
        "A.swift",
        r##"import Foundation

/// Walks.
@MainActor
public final class Walker<T: Codable>: Base, Store {
    public let root: String, depth: Int
    private(set) var size = 1 { didSet { print(size) } }
    var double: Int { size * 2 }
    static let most = 3

    /// Begins.
    public init?(root: String, depth: Int = 1) { self.root = root }
    deinit { }

    func step(_ a: Int, by b: String...) async throws -> [T] {
        let local = 1
        func inner() {}
        return []
    }
    subscript(at: Int) -> Int { at }
    class func make() -> Walker { fatalError() }
}

extension Walker: Equatable where T: Equatable {
    static func == (l: Walker, r: Walker) -> Bool { true }
    typealias Short = [T]
}

struct Point { var x = 0, y = 0 }
enum PartKind: String { case one = "1", two; case three(Int); var label: String { "" } }
protocol Store: AnyObject {
    associatedtype Item
    var count: Int { get }
    func read(name: String) -> Item
    init()
}
actor Counter { var value = 0 }
let top = 1
func free<T>(a: T) -> T where T: Store { a }
typealias Handler = (Int) -> Void
"##,
        &expect![[r#"
            2-21 class Walker: @MainActor public final class Walker<T: Codable>: Base, Store // Walks.
            5-5 field Walker/root: public let root: String, depth: Int
            5-5 field Walker/depth: public let root: String, depth: Int
            6-6 field Walker/size: private(set) var size = 1 { didSet { print(size) } }
            7-7 field Walker/double: var double: Int
            8-8 field Walker/most: static let most = 3
            10-11 method Walker/init: public init?(root: String, depth: Int = 1) // Begins.
            12-12 method Walker/deinit: deinit
            14-18 method Walker/step: func step(_ a: Int, by b: String...) async throws -> [T]
            16-16 function Walker/step/inner: func inner()
            19-19 method Walker/subscript: subscript(at: Int) -> Int
            20-20 method Walker/make: class func make() -> Walker
            24-24 method Walker/==: static func == (l: Walker, r: Walker) -> Bool
            25-25 type Walker/Short: typealias Short = [T]
            28-28 struct Point: struct Point
            28-28 field Point/x: var x = 0, y = 0
            28-28 field Point/y: var x = 0, y = 0
            29-29 enum PartKind: enum PartKind: String
            29-29 constant PartKind/one: case one = "1", two
            29-29 constant PartKind/two: case one = "1", two
            29-29 constant PartKind/three: case three(Int)
            29-29 field PartKind/label: var label: String
            30-35 interface Store: protocol Store: AnyObject
            31-31 type Store/Item: associatedtype Item
            32-32 field Store/count: var count: Int { get }
            33-33 method Store/read: func read(name: String) -> Item
            34-34 method Store/init: init()
            36-36 class Counter: actor Counter
            36-36 field Counter/value: var value = 0
            37-37 constant top: let top = 1
            38-38 function free: func free<T>(a: T) -> T where T: Store
            39-39 type Handler: typealias Handler = (Int) -> Void
        "#]],
    );
}

#[test]
fn what_cpp_declares_is_told_from_what_it_calls() {
    check(
        "a.hpp",
        r##"#pragma once
struct A::B { int c; };
class Forward;
int *first(), count = 1;
void A::operator()(int a) const {}
A::operator bool() const { return true; }
A::~A() {}
static std::string A::name = "a";
auto trailing(int a) -> decltype(a) { return f(a)[0]; }
template <class T> struct Special<T *> { T *operator->(); };
void run() { Guard guard(lock); int b(1); }
"##,
        &expect![[r#"
            1-1 struct A/B: struct A::B
            1-1 field A/B/c: int c
            3-3 function first: int *first(), count = 1
            3-3 constant count: int *first(), count = 1
            4-4 method A/operator(): void A::operator()(int a) const
            5-5 method A/operator bool: A::operator bool() const
            6-6 method A/~A: A::~A()
            7-7 constant A/name: static std::string A::name = "a"
            8-8 function trailing: auto trailing(int a) -> decltype(a)
            9-9 struct Special: template <class T> struct Special<T *>
            9-9 method Special/operator->: T *operator->()
            10-10 function run: void run()
        "#]],
    );
}
