//! The folder that is served, and the settings that hold for all calls in it, for the server and `call` alike.

use std::sync::Arc;
use std::time::Duration;

use files::{Access, AllowedService, DiskOptions, DiskStore, Durability, HostForm, Root, Sandbox};
use model::Host;
use server::{Calls, Log, Options};
use tools::Limits;

/// Checked settings of the served folder.
pub struct FolderSettings {
    pub root: Root,
    /// Limit of the bytes of a file.
    pub max_size: u64,
    pub timeout: Duration,
    pub durability: Durability,
    pub access: Access,
    pub sandbox: SandboxMode,
    pub model: Option<Arc<model::Settings>>,
}

/// Setting of the Landlock sandbox, which confines the process besides the checks of paths.
pub enum SandboxMode {
    On,
    Off,
}

impl FolderSettings {
    /// Opens the folder and enters the sandbox. No other thread may run yet: only threads started from here on are
    /// confined too.
    pub fn open(self, options: Options, log: Log) -> (Arc<Calls>, Sandbox) {
        let root = Arc::new(self.root);
        let disk = DiskOptions { max_size: self.max_size, durability: self.durability };
        let store = DiskStore::open(Arc::clone(&root), disk);
        if self.access == Access::ReadWrite {
            store.sweep_root();
        }
        let sandbox = match self.sandbox {
            SandboxMode::On => Sandbox::enter_allowing(
                &root,
                self.access,
                self.model.as_deref().map(allowed_service),
            ),
            SandboxMode::Off => Sandbox::Off,
        };
        let limits = Limits::new(self.max_size, self.timeout);
        (Calls::new(root, Box::new(store), limits, options, log), sandbox)
    }
}

/// Returns how the model is reached.
fn allowed_service(model: &model::Settings) -> AllowedService {
    let host_form = match model.host() {
        Host::Name(_) => HostForm::Name,
        Host::Address(_) => HostForm::Address,
    };
    AllowedService { port: model.port(), host_form }
}
