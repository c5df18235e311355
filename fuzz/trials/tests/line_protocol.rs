//! The same for lines on stdin: they take stdin and stdout of the process for themselves.

#[cfg(target_os = "linux")]
mod corpus;

#[cfg(target_os = "linux")]
fn main() {
    corpus::replay("line_protocol", trials::line_protocol);
}

#[cfg(not(target_os = "linux"))]
fn main() {}
