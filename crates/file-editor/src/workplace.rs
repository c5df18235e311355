//! The folder that is served, and the settings that hold for all calls in it, for the server and `call` alike.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use files::{Access, AllowedService, DiskOptions, DiskStore, Durability, HostForm, Root, Sandbox};
use model::Host;
use server::{Calls, Log, Options};
use tokio::runtime::{Builder, Runtime};
use tools::Limits;

/// Checked settings of a folder.
pub struct Workplace {
    pub root: Root,
    /// Limit of the bytes of a file.
    pub max_size: u64,
    pub timeout: Duration,
    pub durability: Durability,
    pub access: Access,
    pub second_wall: SecondWall,
    pub model: Option<Arc<model::Settings>>,
}

/// Setting of the kernel sandbox (Landlock), which confines the process besides the checks of paths.
pub enum SecondWall {
    Wanted,
    Unwanted,
}

impl Workplace {
    /// Opens the folder and enters the sandbox. No other thread may run yet: only threads started from here on are
    /// confined too.
    pub fn open(self, options: Options, log: Log) -> (Arc<Calls>, Sandbox) {
        let root = Arc::new(self.root);
        let disk = DiskOptions { max_size: self.max_size, durability: self.durability };
        let store = DiskStore::open(Arc::clone(&root), disk);
        if self.access == Access::ReadWrite {
            store.sweep_root();
        }
        let sandbox = match self.second_wall {
            SecondWall::Wanted => Sandbox::enter_allowing(
                &root,
                self.access,
                self.model.as_deref().map(allowed_service),
            ),
            SecondWall::Unwanted => Sandbox::Off,
        };
        let limits = Limits::new(self.max_size, self.timeout);
        (Calls::new(root, Box::new(store), limits, options, log), sandbox)
    }
}

/// Makes the runtime: one thread for the protocol; file work is done on blocking threads, which end when idle.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(64)
        .thread_keep_alive(Duration::from_secs(1))
        // Stack sizes are address space until used; the C library then caches fewer stacks of ended threads.
        .thread_stack_size(8 << 20)
        .build()
}

/// Returns how the model is reached.
fn allowed_service(model: &model::Settings) -> AllowedService {
    let host_form = match model.host() {
        Host::Name(_) => HostForm::Name,
        Host::Address(_) => HostForm::Address,
    };
    AllowedService { port: model.port(), host_form }
}
