//! What the fuzzer found worth keeping, tried again.

mod corpus;

use corpus::replay;

#[test]
fn decode() {
    replay("decode", trials::decode);
}

#[test]
fn diffs() {
    replay("diffs", trials::diffs_by_git);
}

#[test]
fn http_bodies() {
    replay("http_bodies", trials::http_bodies);
}

#[test]
fn line_edits() {
    replay("line_edits", trials::line_edits);
}

#[test]
fn near_misses() {
    replay("near_misses", trials::near_misses);
}

#[test]
fn outlines() {
    replay("outlines", trials::outlines);
}

#[test]
fn string_edits() {
    replay("string_edits", trials::string_edits);
}
