//! The ways to a server: each transport, in each era of the protocol.

use std::panic::resume_unwind;
use std::thread;

use crate::scene::Scene;
use crate::{Outcome, Row};

#[derive(Clone, Copy)]
pub enum Transport {
    Stdio,
    Http,
}

impl Transport {
    pub fn shown(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        }
    }
}

/// Goes every way, at the same time and each in a scene of its own; a row for each.
pub fn each_way(
    scene: &Scene,
    protocols: &[&'static str],
    go: impl Fn(Transport, &'static str, &Scene) -> Outcome<String> + Sync,
) -> Vec<Row> {
    let go = |transport: Transport, protocol| {
        let did = Scene::new(&scene.binary).and_then(|scene| go(transport, protocol, &scene));
        Row { transport: transport.shown(), protocol, did }
    };
    thread::scope(|scope| {
        let ways = protocols.iter().flat_map(|protocol| {
            [Transport::Stdio, Transport::Http].map(|transport| (transport, *protocol))
        });
        let going: Vec<_> = ways
            .map(|(transport, protocol)| scope.spawn(move || go(transport, protocol)))
            .collect();
        going
            .into_iter()
            .map(|way| way.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}
