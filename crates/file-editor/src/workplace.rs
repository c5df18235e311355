//! The folder that calls work in, and what holds for all of them, whoever makes them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use files::{Access, Callee, DiskOptions, DiskStore, Durability, KnownBy, Root, Sandbox};
use model::Host;
use server::{Calls, Log, Options};
use tokio::runtime::{Builder, Runtime};
use tools::Limits;

/// A folder as it was asked for.
pub struct Workplace {
    pub root: Root,
    /// Bytes.
    pub max_size: u64,
    pub timeout: Duration,
    pub durability: Durability,
    pub access: Access,
    pub second_wall: SecondWall,
    pub model: Option<Arc<model::Settings>>,
}

/// Whether the kernel shall keep the process inside too.
pub enum SecondWall {
    Wanted,
    Unwanted,
}

impl Workplace {
    /// Opens it and goes behind the second wall. There must be no other thread yet: all that are made from here on are
    /// behind the wall too.
    pub fn open(self, options: Options, log: Log) -> (Arc<Calls>, Sandbox) {
        let root = Arc::new(self.root);
        let disk = DiskOptions { max_size: self.max_size, durability: self.durability };
        let store = DiskStore::open(Arc::clone(&root), disk);
        if self.access == Access::ReadWrite {
            store.sweep_root();
        }
        let sandbox = match self.second_wall {
            SecondWall::Wanted => {
                Sandbox::enter_to_call(&root, self.access, self.model.as_deref().map(callee))
            }
            SecondWall::Unwanted => Sandbox::Off,
        };
        let limits = Limits::new(self.max_size, self.timeout);
        (Calls::new(root, Box::new(store), limits, options, log), sandbox)
    }
}

/// One thread for the protocol; files are worked on by others, which are gone when there is nothing to do.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(64)
        .thread_keep_alive(Duration::from_secs(1))
        // Only addresses, until they are used; and the C library keeps fewer large stacks of threads that are gone.
        .thread_stack_size(8 << 20)
        .build()
}

/// How the model is reached.
fn callee(model: &model::Settings) -> Callee {
    let known_by = match model.host() {
        Host::Name(_) => KnownBy::Name,
        Host::Address(_) => KnownBy::Address,
    };
    Callee { port: model.port(), known_by }
}
