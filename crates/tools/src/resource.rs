//! Text files below the root by their URIs: a list of all of them, in pages, and the whole of one. For programs that
//! show files to people, rather than for models.

mod list_resources;
mod read_resource;
mod uri;

pub use list_resources::{ListResources, Page, Row};
pub use read_resource::ReadResource;

use std::path::{Component, Path};

use files::{FilePath, PathError, Root, StoreError};

use crate::store_error::FileAction;
use crate::text_file;
use crate::{Dialect, Effect, Failure, Limits, Toolset};

/// The files by their URIs, as a toolset.
pub struct Resources;

impl Toolset for Resources {
    const NAME: &'static str = "resource";
    const DIALECT: Dialect = Dialect::Resource;

    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError> {
        root.absolute(&path(target))
    }

    fn refused(target: &str, error: &StoreError, limits: &Limits, _: Effect) -> Failure {
        text_file::refused(&path(target), error, limits, FileAction::ReadResource)
    }
}

/// Returns the URIs of all files, existing or not, as a template (RFC 6570) of a `path` below the folder.
pub fn template(root: &Root) -> Option<String> {
    Some(format!("{}{{+path}}", uri::of(&format!("{}/", folder(root)?))))
}

/// Returns the path of a URI that was checked.
fn path(uri: &str) -> String {
    uri::path_of(uri).unwrap_or_default()
}

/// Returns the folder as URIs begin, without a `/` at its end; `None` if it is not UTF-8. It is the path as given,
/// unless that has a `..`: another program may fold it, and the result is another folder if there are links.
fn folder(root: &Root) -> Option<&str> {
    let is_plain = |path: &Path| !path.components().any(|part| part == Component::ParentDir);
    let path = if is_plain(root.path()) { root.path() } else { root.resolved() };
    Some(path.to_str()?.trim_end_matches(std::path::is_separator))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test sets the scene")]
    fn a_template_has_one_slash_before_the_path() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().canonicalize().expect("a folder");
        let path = path.to_str().expect("text");
        std::fs::create_dir_all(dir.path().join("a/b")).expect("folders");
        std::os::unix::fs::symlink("a/b", dir.path().join("link")).expect("a link");
        for (given, expected) in [
            ("/".into(), "file:///{+path}".into()),
            (path.to_owned(), format!("file://{path}/{{+path}}")),
            (format!("{path}/"), format!("file://{path}/{{+path}}")),
            // The path as it was given, links and all; but not with a `..`, which another program may fold.
            (format!("{path}/link"), format!("file://{path}/link/{{+path}}")),
            (format!("{path}/link/.."), format!("file://{path}/a/{{+path}}")),
        ] {
            let root = Root::open(Path::new(&given)).expect("a folder");
            assert_eq!(template(&root), Some(expected));
        }
    }
}
