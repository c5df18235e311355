//! Random bytes from the system, for keys, tokens and ids.

pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// Random bytes in hexadecimal digits.
pub fn hex<const N: usize>() -> String {
    bytes::<N>().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// Uses the system call directly: a library that does not find it, as in a static binary, would open a device outside the
/// sandbox.
#[cfg(target_os = "linux")]
fn fill(bytes: &mut [u8]) -> std::io::Result<()> {
    use rustix::rand::{GetRandomFlags, getrandom};
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn fill(bytes: &mut [u8]) -> std::io::Result<()> {
    getrandom::fill(bytes).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_are_the_same() {
        assert_ne!(super::bytes::<32>(), super::bytes::<32>());
        assert_ne!(super::bytes::<300>()[200..], [0; 100]);
    }
}
