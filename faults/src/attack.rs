//! HTTP under attack: whatever comes in, memory is bounded, nothing is edited that should not be, and somebody who only
//! wants to work is answered all the while.

mod crowd;
mod doors;
mod framing;
mod noise;
mod scene;

use std::thread::JoinHandle;

use crate::http::raise_descriptor_limit;
use crate::report::{Row, Scale};

type Attack = fn(Scale) -> JoinHandle<Row>;

const ATTACKS: &[Attack] = &[
    framing::malformed,
    framing::headers,
    framing::pipelining,
    doors::rebinding,
    doors::guessing,
    crowd::concurrent,
    crowd::queued,
    crowd::non_readers,
    crowd::stalled_bodies,
    noise::json_bombs,
    noise::garbage,
];

/// One attack after another, while memory settles after the last one.
pub fn run(scale: Scale) -> Vec<Row> {
    raise_descriptor_limit();
    let rows: Vec<_> = ATTACKS.iter().map(|attack| attack(scale)).collect();
    rows.into_iter().map(|row| row.join().unwrap()).collect()
}
