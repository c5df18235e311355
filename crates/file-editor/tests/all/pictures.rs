//! README's pictures: what a terminal shows of two calls, drawn from what the binary prints.
//!
//! `UPDATE_EXPECT=1` draws them again.

use std::fmt::Write as _;
use std::process::Command;

use crate::harness::Folder;
use expect_test::expect_file;

const LINE: usize = 20;
/// Of a character, in hundredths of a pixel.
const WIDTH: usize = 843;
const MARGIN: usize = 18;

const CONFIGURATION: &str = "\
[server]
host = \"localhost\"
port = 8080
workers = 4

[log]
level = \"info\"
";

const SOURCE: &str = "\
fn limit(sum: u32) -> u32 {
\tif sum > 100 {
\t\treturn sum - 10;
\t}
\tsum
}
";

#[test]
fn an_edit() {
    let folder = Folder::new();
    folder.write("config.toml", CONFIGURATION);
    let edits = r#"[{"old_string": "port = 8080", "new_string": "port = 3000"}, {"old_string": "level = \"info\"", "new_string": "level = \"debug\""}]"#;
    let shown = "file-editor call multi_edit_text_file path=$PWD/config.toml edits='[\n    {\"old_string\": \"port = 8080\", \"new_string\": \"port = 3000\"},\n    {\"old_string\": \"level = \\\"info\\\"\", \"new_string\": \"level = \\\"debug\\\"\"}]'";
    let svg = picture(&folder, shown, "config.toml", edits);
    expect_file!["../../../../docs/pictures/edit.svg"].assert_eq(&svg);
}

#[test]
fn a_refusal_that_teaches() {
    let folder = Folder::new();
    folder.write("limit.rs", SOURCE);
    let edits =
        r#"[{"old_string": "    if sum > 100 {\n        return sum - 10;", "new_string": "…"}]"#;
    let shown = "file-editor call multi_edit_text_file path=$PWD/limit.rs edits='[\n    {\"old_string\": \"    if sum > 100 {\\n        return sum - 10;\", \"new_string\": \"…\"}]'";
    let svg = picture(&folder, shown, "limit.rs", edits);
    expect_file!["../../../../docs/pictures/refusal.svg"].assert_eq(&svg);
}

/// What is shown is typed, and what comes of it.
fn picture(folder: &Folder, shown: &str, name: &str, edits: &str) -> String {
    let path = folder.path().join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_file-editor"))
        .args(["call", "multi_edit_text_file", "--color=always"])
        .arg(format!("--dir={}", folder.path().display()))
        .arg(format!("path={}", path.display()))
        .arg(format!("edits={edits}"))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    let here = format!("{}/", folder.path().display());
    svg(&format!("\x1b[1m$ {shown}\x1b[0m\n{}", said.replace(&here, "").trim_end()))
}

/// The class of what comes behind an escape sequence.
fn class(codes: &str) -> &'static str {
    match codes.rsplit(';').next() {
        Some("31") => "minus",
        Some("32") => "plus",
        Some("36") => "head",
        Some("1") => "typed",
        Some("2") => "dim",
        _ => "",
    }
}

fn svg(terminal: &str) -> String {
    let lines: Vec<Vec<(&str, String)>> = lines(terminal);
    let longest =
        lines.iter().map(|line| line.iter().map(|(_, text)| text.chars().count()).sum::<usize>());
    let width = longest.max().unwrap_or(0) * WIDTH / 100 + 2 * MARGIN;
    let height = lines.len() * LINE + 2 * MARGIN;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">
<style>
text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d4d4d8; white-space: pre }}
.minus {{ fill: #f87171 }} .plus {{ fill: #4ade80 }} .head {{ fill: #67e8f9 }} .typed {{ fill: #ffffff }} .dim {{ fill: #8b8b94 }}
</style>
<rect width="100%" height="100%" rx="8" fill="#18181b"/>
"##
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + number * LINE + 14;
        write!(svg, r#"<text x="{MARGIN}" y="{y}" xml:space="preserve">"#).unwrap();
        for (class, text) in line {
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            match *class {
                "" => svg.push_str(&text),
                class => write!(svg, r#"<tspan class="{class}">{text}</tspan>"#).unwrap(),
            }
        }
        svg.push_str("</text>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Lines, each as stretches of one colour. Tabs are shown as an arrow and blanks.
fn lines(terminal: &str) -> Vec<Vec<(&'static str, String)>> {
    let mut current = "";
    terminal
        .split('\n')
        .map(|line| {
            let mut stretches = Vec::new();
            for (number, piece) in line.split("\x1b[").enumerate() {
                let text = match piece.split_once('m') {
                    Some((codes, text)) if number > 0 => {
                        current = class(codes);
                        text
                    }
                    _ => piece,
                };
                if !text.is_empty() {
                    stretches.push((current, text.replace('\t', "→   ")));
                }
            }
            stretches
        })
        .collect()
}
