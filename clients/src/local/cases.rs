//! The edits that are asked for, and the files they are of.

use std::fs;

use serde_json::{Value, json};

use super::MODEL;
use crate::Outcome;
use crate::codex::ensure;
use crate::scene::Scene;

pub struct Case {
    pub what: &'static str,
    pub file: &'static str,
    pub place: Place,
    pub instruction: &'static str,
    pub with: With,
    pub end: End,
}

/// What may change.
pub enum Place {
    /// From this line to that one, counted from 1.
    Lines(usize, usize),
    Before(usize),
    /// New lines after the last one.
    End,
    File,
}

/// What the server is told of the model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum With {
    AllRight,
    UnknownModel,
    WrongKey,
    WrongAddress,
    /// A person is asked first, and agrees.
    Asking,
}

#[derive(PartialEq, Eq)]
pub enum End {
    /// That is up to the model.
    Any,
    /// Refused, before it was asked.
    Unasked,
    /// Refused by its server, and not asked again.
    NotServed,
}

impl With {
    pub fn model(self) -> &'static str {
        match self {
            Self::UnknownModel => "no-such-model",
            Self::AllRight | Self::WrongKey | Self::WrongAddress | Self::Asking => MODEL,
        }
    }
}

impl End {
    pub fn check(&self, data: &Value, asked: usize) -> Outcome<()> {
        let holds = match self {
            Self::Any => matches!(data["code"].as_str(), Some("GENERATION_FAILED" | "TIMED_OUT")),
            Self::Unasked => data["code"] == "INVALID_INPUT" && asked == 0,
            Self::NotServed => data["code"] == "GENERATION_FAILED" && asked == 1,
        };
        ensure(holds, || format!("refused otherwise, with the model asked {asked} times: {data}"))
    }
}

impl Case {
    const fn new(
        what: &'static str,
        file: &'static str,
        place: Place,
        instruction: &'static str,
    ) -> Self {
        Self { what, file, place, instruction, with: With::AllRight, end: End::Any }
    }

    const fn with(self, with: With) -> Self {
        Self { with, ..self }
    }

    const fn ends(self, end: End) -> Self {
        Self { end, ..self }
    }

    pub fn arguments(&self) -> Value {
        let mut arguments =
            json!({ "target_file": self.file, "edit_instruction": self.instruction });
        match self.place {
            Place::Lines(first, last) => {
                arguments["start_line"] = first.into();
                arguments["end_line"] = last.into();
            }
            Place::Before(line) => {
                arguments["start_line"] = line.into();
                arguments["edit_type"] = "insert".into();
            }
            Place::End => arguments["edit_type"] = "insert".into(),
            Place::File => {}
        }
        arguments
    }
}

const PYTHON: &str = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n";
const SMALL_PYTHON: &str = "def greet(name):\n    print(\"Hello\", name)\n";
const RUST: &str = "/// The larger of two numbers.\nfn larger(a: u32, b: u32) -> u32 {\n    if a > b { a } else { b }\n}\n\n\
                    fn main() {\n    println!(\"{}\", larger(1, 2));\n}\n";
const SCRIPT: &str = "function double(x) {\n  return x * 2;\n}\n\nconsole.log(double(21));\n";
const WINDOWS: &str = "def half(x):\r\n    return x / 2\r\n\r\n\r\nprint(half(84))\r\n";

pub fn put_files(scene: &Scene) -> Outcome<()> {
    for (name, text) in [
        ("calc.py", PYTHON),
        ("greet.py", SMALL_PYTHON),
        ("main.rs", RUST),
        ("double.js", SCRIPT),
        ("half.py", WINDOWS),
        ("long.py", &"value = compute(value, 12345)\n".repeat(390)),
    ] {
        scene.put(name, text)?;
    }
    fs::write(scene.path("latin1.py"), b"# caf\xe9\nprint(1)\n")?;
    fs::write(scene.path("image.bin"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")?;
    Ok(())
}

pub const CASES: &[Case] = &[
    Case::new(
        "Python, two lines",
        "calc.py",
        Place::Lines(1, 2),
        "Rename the function add to plus.",
    ),
    Case::new(
        "Python, new lines before others",
        "calc.py",
        Place::Before(1),
        "Write one comment line that says: arithmetic.",
    ),
    Case::new(
        "Python, new lines at the end",
        "calc.py",
        Place::End,
        "Write a function mul(a, b) that returns a * b.",
    ),
    Case::new(
        "Python, a small file",
        "greet.py",
        Place::File,
        "Print \"Goodbye\" instead of \"Hello\".",
    ),
    Case::new("Rust, one line", "main.rs", Place::Lines(7, 7), "Print larger(3, 4) instead."),
    Case::new("Rust, a small file", "main.rs", Place::File, "Rename larger to maximum."),
    Case::new(
        "JavaScript, three lines",
        "double.js",
        Place::Lines(1, 3),
        "Rename the function to twice.",
    ),
    Case::new(
        "JavaScript, new lines at the end",
        "double.js",
        Place::End,
        "Write a function triple(x) that returns x * 3.",
    ),
    Case::new("CRLF, two lines", "half.py", Place::Lines(1, 2), "Divide by 4 instead of 2."),
    Case::new("CRLF, a small file", "half.py", Place::File, "Print half(42) instead."),
    Case::new("Latin-1", "latin1.py", Place::Lines(2, 2), "Print 2 instead.").ends(End::Unasked),
    Case::new("no text", "image.bin", Place::File, "Make it larger.").ends(End::Unasked),
    Case::new("no such line", "calc.py", Place::Lines(900, 901), "Remove it.").ends(End::Unasked),
    Case::new("more than the model can read", "long.py", Place::File, "Use 54321 instead.")
        .ends(End::NotServed),
    Case::new("a model that is not there", "greet.py", Place::File, "Print \"Hi\" instead.")
        .with(With::UnknownModel),
    Case::new(
        "a person is asked first",
        "double.js",
        Place::End,
        "Write a function half(x) that returns x / 2.",
    )
    .with(With::Asking),
    Case::new("a wrong key", "greet.py", Place::File, "Print \"Hi\" instead.")
        .with(With::WrongKey)
        .ends(End::NotServed),
    Case::new("a wrong address", "greet.py", Place::File, "Print \"Hi\" instead.")
        .with(With::WrongAddress)
        .ends(End::NotServed),
];
