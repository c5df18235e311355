//! Finds names that may have been meant by the name of a missing file.

use std::ops::ControlFlow;

use files::{FilePath, StoreError};

use crate::Context;

/// Most names compared, and most names shown.
const LOOKED_AT: usize = 2000;
const SHOWN: usize = 3;
/// Most letters of a name that is compared.
const COMPARED: usize = 80;

/// Returns the hint about a missing file; `None` if there is nothing to say.
pub(super) fn alike(at: &FilePath, cx: &Context) -> Option<String> {
    let wanted = at.name();
    let (mut seen, mut found) = (0, Vec::new());
    let listed = cx.store.list(&at.parent(), cx.call, &mut |entry| {
        if let Some(name) = entry.name.to_str()
            && let Some(distance) = distance(&wanted, name)
        {
            found.push((distance, name.to_owned()));
        }
        seen += 1;
        if seen < LOOKED_AT { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match listed {
        Err(StoreError::NoFolder) => {
            return Some("the folder it would be in does not exist".into());
        }
        Err(_) => return None,
        Ok(()) => found.sort(),
    }
    let names: Vec<_> = found.iter().take(SHOWN).map(|(_, name)| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| format!("the same folder has {}", names.join(", ")))
}

/// Counts the letters that differ; `None` if too many do, or if a name cannot be shown.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let letters = |name: &str| name.to_lowercase().chars().collect::<Vec<_>>();
    let (wanted, found) = (letters(wanted), letters(name));
    let most = (wanted.len() / 5).min(3);
    let is_far = wanted.len().abs_diff(found.len()) > most || wanted.len() > COMPARED;
    if is_far || name.contains(char::is_control) {
        return None;
    }
    let mut row: Vec<usize> = (0..=found.len()).collect();
    for (index, letter) in wanted.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in found.iter().enumerate() {
            let change = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_alike_when_few_letters_differ() {
        let check = |wanted: &str, name: &str, expected| {
            assert_eq!(distance(wanted, name), expected, "{wanted} {name}");
        };
        check("man.rs", "main.rs", Some(1));
        check("README.md", "readme.md", Some(0));
        check("config.yml", "config.yaml", Some(1));
        check("a.rs", "b.rs", None);
        check("B", "b", Some(0));
        check("ab", "xy", None);
        check("main.rs", "lib.rs", None);
        check("test_client.py", "test_cleint.py", Some(2));
        check("x.txt", "\n.txt", None);
        check("xmain.rs", "main.rs", Some(1));
        for (letters, expected) in [(79, Some(0)), (80, Some(0)), (81, None), (82, None)] {
            let name = "x".repeat(letters);
            check(&name, &name, expected);
        }
    }
}
