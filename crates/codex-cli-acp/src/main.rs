//! Codex CLI as an ACP agent: editors start it, it runs Codex behind it, and Codex edits the editor's buffers.

fn main() {}
