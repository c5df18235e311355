//! Text files below the root by their URIs: a list of all of them, in pages, and the whole of one. For programs that show
//! files to people, rather than for models.

mod list_resources;
mod read_resource;
mod uri;

pub use list_resources::{ListResources, Page, Row};
pub use read_resource::ReadResource;

use std::path::{Component, Path};

use files::Root;

/// The URIs of all files, whether they are there or not, as a template (RFC 6570) of a `path` below the folder.
pub fn template(root: &Root) -> Option<String> {
    Some(format!("{}{{+path}}", uri::of(&format!("{}/", folder(root)?))))
}

/// The folder as URIs begin, without a `/` at its end; `None` if it cannot be written down. That is how it was given, unless
/// there is a `..` in it: those who handle URIs may fold that, and it is another folder then, if there are links.
fn folder(root: &Root) -> Option<&str> {
    let is_plain = |path: &Path| !path.components().any(|part| part == Component::ParentDir);
    let path = if is_plain(root.path()) { root.path() } else { root.resolved() };
    Some(path.to_str()?.trim_end_matches(std::path::is_separator))
}
