//! Archives, the same bytes for the same contents: no times of this machine, owners or order of folders go into them.

use miniz_oxide::deflate::compress_to_vec;
use sha2::{Digest, Sha256};

/// A file of an archive.
#[derive(Clone)]
pub struct Entry {
    /// With `/` between folders.
    pub path: String,
    pub bytes: Vec<u8>,
    /// As Unix has it: 0o755 for programs, 0o644 for the rest.
    pub mode: u32,
}

impl Entry {
    pub fn program(path: String, bytes: Vec<u8>) -> Self {
        Self { path, bytes, mode: 0o755 }
    }

    pub fn text(path: String, text: impl Into<Vec<u8>>) -> Self {
        Self { path, bytes: text.into(), mode: 0o644 }
    }
}

/// How hard it is tried, of 10.
const LEVEL: u8 = 9;
/// The first second of 1980, before which zip knows no time.
const TIME: u32 = 315_532_800;

pub fn tar_gz(entries: &[Entry]) -> Result<Vec<u8>, String> {
    let mut tar = Vec::new();
    for entry in entries {
        tar.extend(tar_header(entry)?);
        tar.extend(&entry.bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    // Deflated, no flags, no time, of an unknown system.
    let mut gz = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    gz.extend(compress_to_vec(&tar, LEVEL));
    gz.extend(crc32(&tar).to_le_bytes());
    gz.extend(length(tar.len())?.to_le_bytes());
    Ok(gz)
}

fn tar_header(entry: &Entry) -> Result<[u8; 512], String> {
    if entry.path.len() > 100 {
        return Err(format!("{}: a path in an archive has 100 bytes at most", entry.path));
    }
    let mut header = [0; 512];
    let mut put = |at: usize, text: &str| {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    };
    put(0, &entry.path);
    put(100, &format!("{:07o}", entry.mode));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", length(entry.bytes.len())?));
    put(136, &format!("{TIME:011o}"));
    // The sum of all bytes counts its own place as blanks.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

pub fn zip(entries: &[Entry]) -> Result<Vec<u8>, String> {
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = length(zip.len())?;
        let packed = compress_to_vec(&entry.bytes, LEVEL);
        let mut common = Vec::new();
        // Needs version 2.0; names are UTF-8; deflated; midnight of the first of January 1980.
        for half in [20_u16, 0x0800, 8, 0, 0x0021] {
            common.extend(half.to_le_bytes());
        }
        common.extend(crc32(&entry.bytes).to_le_bytes());
        common.extend(length(packed.len())?.to_le_bytes());
        common.extend(length(entry.bytes.len())?.to_le_bytes());
        common.extend(short(entry.path.len())?.to_le_bytes());
        common.extend([0; 2]);
        zip.extend(b"PK\x03\x04");
        zip.extend(&common);
        zip.extend(entry.path.as_bytes());
        zip.extend(packed);
        // Made on Unix, so that the mode counts: a regular file, 0o100000, with its permissions.
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(common);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | entry.mode) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.path.as_bytes());
    }
    let (offset, size) = (length(zip.len())?, length(directory.len())?);
    let count = short(entries.len())?.to_le_bytes();
    zip.extend(directory);
    zip.extend(b"PK\x05\x06\0\0\0\0");
    zip.extend([count, count].concat());
    zip.extend(size.to_le_bytes());
    zip.extend(offset.to_le_bytes());
    zip.extend([0; 2]);
    Ok(zip)
}

fn length(length: usize) -> Result<u32, String> {
    u32::try_from(length).map_err(|_| format!("{length} bytes are too many for an archive"))
}

fn short(length: usize) -> Result<u16, String> {
    u16::try_from(length).map_err(|_| format!("{length} are too many for an archive"))
}

fn crc32(bytes: &[u8]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|byte| {
        let byte = u32::try_from(byte).unwrap_or_default();
        (0..8).fold(byte, |rest, _| (rest >> 1) ^ if rest & 1 == 1 { 0xedb8_8320 } else { 0 })
    });
    !bytes.iter().fold(!0, |sum, byte| (sum >> 8) ^ table[usize::from(sum.to_le_bytes()[0] ^ byte)])
}

pub fn sha256(bytes: &[u8]) -> String {
    let digits: Vec<_> = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}
