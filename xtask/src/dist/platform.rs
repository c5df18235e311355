//! Where the product runs, and for which of rustc's targets it is built there. Everything that is packed takes its names
//! from here.

/// What is built for every platform.
pub const BINARIES: [&str; 2] = ["file-editor", "codex-cli-acp"];

pub struct Platform {
    /// As npm and MCP bundles say it.
    pub name: &'static str,
    pub system: &'static str,
    pub processor: &'static str,
    /// As container images say it, where there is one.
    pub container: Option<&'static str>,
    /// The first one that can be built here stands for the platform.
    pub targets: &'static [&'static str],
}

/// glibc before musl: with its allocator a read or an edit of 1 MB takes half of the time, and an idle server a third of
/// the memory. musl is for where glibc cannot be linked.
pub const PLATFORMS: [Platform; 5] = [
    Platform {
        name: "linux-x64",
        system: "linux",
        processor: "x64",
        container: Some("amd64"),
        targets: &["x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"],
    },
    Platform {
        name: "linux-arm64",
        system: "linux",
        processor: "arm64",
        container: Some("arm64"),
        targets: &["aarch64-unknown-linux-gnu", "aarch64-unknown-linux-musl"],
    },
    Platform {
        name: "win32-x64",
        system: "win32",
        processor: "x64",
        container: None,
        targets: &["x86_64-pc-windows-gnu"],
    },
    Platform {
        name: "darwin-x64",
        system: "darwin",
        processor: "x64",
        container: None,
        targets: &["x86_64-apple-darwin"],
    },
    Platform {
        name: "darwin-arm64",
        system: "darwin",
        processor: "arm64",
        container: None,
        targets: &["aarch64-apple-darwin"],
    },
];

impl Platform {
    pub fn of(target: &str) -> Option<&'static Self> {
        PLATFORMS.iter().find(|platform| platform.targets.contains(&target))
    }

    pub fn exe(&self) -> &'static str {
        if self.system == "win32" { ".exe" } else { "" }
    }
}

/// `file-editor-1.0.0-x86_64-unknown-linux-musl`: an archive without its suffix, and the folder in it.
pub fn stem(version: &str, target: &str) -> String {
    format!("file-editor-{version}-{target}")
}

pub fn archive(version: &str, target: &str) -> String {
    let suffix = if is_zipped(target) { "zip" } else { "tar.gz" };
    format!("{}.{suffix}", stem(version, target))
}

/// As people on Windows expect it.
pub fn is_zipped(target: &str) -> bool {
    target.contains("windows")
}

pub fn bundle(version: &str, platform: &Platform) -> String {
    format!("{}.mcpb", stem(version, platform.name))
}
