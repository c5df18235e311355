//! The simplest program that applies a unified diff, and believes nothing of it.

/// `old` with `diff` applied. Whatever the diff says besides, of lines and how many there are, must be true.
pub fn patch(old: &str, diff: &str) -> String {
    let mut old = old.split_inclusive('\n');
    let (mut new, mut old_line, mut new_line) = (String::new(), 0, 0);
    let mut shown = diff.split_inclusive('\n').peekable();
    if shown.peek().is_none() {
        return old.collect();
    }
    assert!(shown.next().is_some_and(|line| line.starts_with("--- ")));
    assert!(shown.next().is_some_and(|line| line.starts_with("+++ ")));
    while let Some(header) = shown.next() {
        let ([old_start, mut removed], [new_start, mut added]) = header_of(header);
        while old_line < old_start {
            new.push_str(old.next().expect("a hunk begins in the old text"));
            (old_line, new_line) = (old_line + 1, new_line + 1);
        }
        assert_eq!((old_line, new_line), (old_start, new_start), "where it begins: {header}");
        while removed + added > 0 {
            let line = shown.next().expect("a hunk has as many lines as it says");
            let (sign, content) = line.split_at(1);
            let is_open = shown.next_if(|next| next.starts_with('\\')).is_some();
            let content = if is_open { &content[..content.len() - 1] } else { content };
            assert!(matches!(sign, " " | "-" | "+"), "what a line begins with: {line}");
            if sign != "+" {
                assert_eq!(old.next(), Some(content), "a line of the old text");
                (old_line, removed) = (old_line + 1, removed - 1);
            }
            if sign != "-" {
                new.push_str(content);
                (new_line, added) = (new_line + 1, added - 1);
            }
        }
    }
    new.extend(old);
    new
}

/// Of each side the lines before the hunk and the lines in it.
fn header_of(header: &str) -> ([usize; 2], [usize; 2]) {
    let spans = header.strip_prefix("@@ -").and_then(|rest| rest.strip_suffix(" @@\n"));
    let (old, new) = spans.and_then(|spans| spans.split_once(" +")).expect("the head of a hunk");
    (span(old), span(new))
}

/// A side without lines names the one before it.
fn span(span: &str) -> [usize; 2] {
    let (start, count) = span.split_once(',').expect("a line and how many there are");
    let [start, count] = [start, count].map(|number| number.parse::<usize>().expect("a number"));
    [if count == 0 { start } else { start - 1 }, count]
}
