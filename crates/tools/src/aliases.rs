//! Names that models know from other tools and use for our arguments. They are refused, since a guess may be wrong, but
//! the refusal says what the argument is called here.

/// Names used elsewhere, as lower-case letters alone, and our names for them; the first of those that a tool has is
/// meant.
const ELSEWHERE: [(&[&str], &[&str]); 15] = [
    (
        &[
            "filepath",
            "file",
            "filename",
            "absolutepath",
            "relativepath",
            "targetfile",
            "pathname",
            "uri",
            "fileuri",
            "name",
            "path",
            "target",
        ],
        &["path", "name"],
    ),
    (
        &[
            "oldstr",
            "oldtext",
            "old",
            "search",
            "searchstring",
            "searchtext",
            "find",
            "findtext",
            "from",
            "original",
            "originaltext",
            "before",
            "oldcontent",
            "oldcode",
            "pattern",
        ],
        &["old_string"],
    ),
    (
        &[
            "newstr",
            "newtext",
            "new",
            "replace",
            "replacement",
            "replacestring",
            "replacetext",
            "replacewith",
            "to",
            "after",
            "updated",
            "newcontent",
            "newcode",
        ],
        &["new_string"],
    ),
    (
        &[
            "contents",
            "text",
            "filetext",
            "filecontent",
            "filecontents",
            "data",
            "body",
            "code",
            "codeedit",
            "newcontent",
            "newtext",
            "newstring",
            "insertline",
            "value",
        ],
        &["content"],
    ),
    (
        &["changes", "replacements", "operations", "edit", "modifications", "replacementchunks"],
        &["edits"],
    ),
    (
        &[
            "offset",
            "startline",
            "start",
            "fromline",
            "linenumber",
            "beginline",
            "firstline",
            "line",
        ],
        &["line", "start_line"],
    ),
    (&["numlines", "maxlines", "count", "length", "lines", "linecount", "head"], &["limit"]),
    (&["end", "toline", "lastline"], &["end_line"]),
    (
        &[
            "createdirectories",
            "createparents",
            "mkdir",
            "mkdirs",
            "makedirs",
            "parents",
            "createfolders",
        ],
        &["create_dirs"],
    ),
    (&["preview", "simulate", "checkonly"], &["dry_run"]),
    (&["all", "global", "multiple", "replaceeverywhere", "allowmultiple"], &["replace_all"]),
    (
        &["expectedreplacements", "expectedoccurrences", "expectedmatches", "occurrences"],
        &["expected_count"],
    ),
    (
        &["hash", "etag", "sha", "sha256", "checksum", "ifmatch", "expectedsha", "expectedsha256"],
        &["expected_hash"],
    ),
    (&["linehint", "nearestline", "line", "startline"], &["near_line"]),
    (&["mode", "matchmode", "matching", "fuzzy", "ignorewhitespace", "ignoreblanks"], &["match"]),
];

/// Returns the one of `known` that `name` means.
pub(crate) fn meant<'a>(
    name: &str,
    mut known: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let name = letters(name);
    if let Some(spelt) = known.clone().find(|known| letters(known) == name) {
        return Some(spelt);
    }
    let ours = ELSEWHERE.iter().filter(|(elsewhere, _)| elsewhere.contains(&name.as_str()));
    ours.flat_map(|(_, ours)| *ours)
        .find_map(|ours| known.clone().find(|known| known == ours))
        .or_else(|| known.find(|known| *known == "line_numbers" && name.contains("linenumber")))
}

/// Returns the letters and digits of a name in lower case: `oldText`, `old_text` and `OLD-TEXT` are one name.
fn letters(name: &str) -> String {
    name.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
