//! Links on the way to a configuration file. Those of a project are followed only within it.

use std::fmt;
use std::path::{Path, PathBuf};

use files::machine::{self, LinkError};

use super::{Configuration, Project};

impl Configuration {
    /// Returns why the file is not written to, if a link leads out of the project.
    pub fn link_outside_project(&self) -> Option<String> {
        let project = self.project.as_ref()?;
        let name = self.path.strip_prefix(&project.folder).ok()?;
        match machine::follow_links_inside(&project.folder, name) {
            Err(LinkError::Outside { link, target }) => Some(outside(project, &link, &target)),
            _ => None,
        }
    }

    /// Returns the path of the file with all links followed.
    pub fn file(&self) -> Result<PathBuf, String> {
        let failed = |error: &dyn fmt::Display| {
            format!("{} cannot be resolved: {error}", self.path.display())
        };
        let Some(project) = &self.project else {
            return machine::follow_links(&self.path).map_err(|error| failed(&error));
        };
        let name = self.path.strip_prefix(&project.folder).map_err(|error| failed(&error))?;
        match machine::follow_links_inside(&project.folder, name) {
            Ok(name) => Ok(project.folder.join(name)),
            Err(LinkError::Outside { link, target }) => Err(outside(project, &link, &target)),
            Err(LinkError::Failed(error)) => Err(failed(&error)),
        }
    }
}

/// Returns why a file of a project is neither written nor read.
fn outside(project: &Project, link: &Path, target: &Path) -> String {
    format!(
        "{} is a link to {}, which is outside the project {}: not followed. Replace the link with a file or folder of the \
         project",
        link.display(),
        target.display(),
        project.folder.display()
    )
}
