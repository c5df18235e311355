#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;

use miniz_oxide::inflate::decompress_to_vec;
use serde_json::Value;

use super::archive::{Entry, sha256, tar_gz, zip};
use super::manual::{FILES, Manual};
use super::package::{Built, npm_wrapper};
use super::platform::{PLATFORMS, Platform, archive, bundle};
use super::template::Values;
use super::{LIMIT, REPOSITORY, VERSION, check_size, choose, index};
use crate::root;

fn values() -> Values {
    Values::new(VERSION, REPOSITORY).unwrap()
}

/// With what is known once everything is built.
fn all_values() -> Values {
    PLATFORMS.iter().fold(values(), |values, platform| {
        values
            .with(format!("sha256 {}", platform.name), "0".repeat(64))
            .with(format!("archive {}", platform.name), archive(VERSION, platform.targets[0]))
    })
}

fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn platform_names() -> BTreeSet<&'static str> {
    PLATFORMS.iter().map(|platform| platform.name).collect()
}

#[test]
fn archives_are_named_by_version_and_target() {
    for (target, expected) in [
        ("x86_64-unknown-linux-musl", "file-editor-1.2.3-x86_64-unknown-linux-musl.tar.gz"),
        ("aarch64-apple-darwin", "file-editor-1.2.3-aarch64-apple-darwin.tar.gz"),
        ("x86_64-pc-windows-gnu", "file-editor-1.2.3-x86_64-pc-windows-gnu.zip"),
    ] {
        assert_eq!(archive("1.2.3", target), expected);
    }
    assert_eq!(bundle("1.2.3", &PLATFORMS[0]), "file-editor-1.2.3-linux-x64.mcpb");
}

#[test]
fn gaps_are_filled_or_named() {
    let values = values().with("a", "1").with("b c", "2");
    for (template, expected) in [
        ("", Ok("")),
        ("{{a}}{{b c}}", Ok("12")),
        ("${{a}} {a} {{", Ok("$1 {a} {{")),
        ("x {{a}} y {{d}} {{e}}", Err("d")),
        ("{{a}", Ok("{{a}")),
    ] {
        let filled = values.fill(template);
        assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{template}");
    }
}

#[test]
fn a_repository_has_an_owner() {
    let values = Values::new("1.2.3", "https://github.com/Some-One/file-editor").unwrap();
    assert_eq!((values.get("owner"), values.get("owner_lowercase")), ("Some-One", "some-one"));
    for repository in ["", "https://github.com/file-editor", "https://github.com//file-editor"] {
        assert!(Values::new("1.2.3", repository).is_err(), "{repository}");
    }
}

#[test]
fn checksums_are_those_of_the_standard() {
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

fn entries() -> [Entry; 2] {
    [
        Entry::program("a/run".into(), b"program ".repeat(100)),
        Entry::text("a/b.txt".into(), "text\n"),
    ]
}

#[test]
fn a_tar_holds_what_was_put_into_it() {
    let packed = tar_gz(&entries()).unwrap();
    let (body, end) = packed[10..].split_at(packed.len() - 18);
    let tar = decompress_to_vec(body).unwrap();
    assert_eq!(end[4..], u32::try_from(tar.len()).unwrap().to_le_bytes());
    assert_eq!(tar.len(), 512 + 1024 + 512 + 512 + 1024);
    let (first, second) = (&tar[..512], &tar[512 + 1024..]);
    assert!(first.starts_with(b"a/run\0") && first[100..].starts_with(b"0000755\0"));
    assert_eq!(tar[512..512 + 800], b"program ".repeat(100));
    assert!(second.starts_with(b"a/b.txt\0") && second[512..].starts_with(b"text\n\0"));
    assert!(first[124..].starts_with(b"00000001440\0"), "800 in octal");
    let sum: u32 = first.iter().map(|byte| u32::from(*byte)).sum();
    let own: u32 = first[148..156].iter().map(|byte| u32::from(*byte)).sum();
    assert!(first[148..].starts_with(format!("{:06o}\0", sum - own + 8 * 32).as_bytes()));
    assert!(tar_gz(&[Entry::text("a".repeat(101), "")]).is_err());
}

#[test]
fn a_zip_holds_what_was_put_into_it() {
    let packed = zip(&entries()).unwrap();
    let end = packed.len() - 22;
    assert!(packed[end..].starts_with(b"PK\x05\x06") && packed[end + 10] == 2);
    let number = |at: usize| u32::from_le_bytes(packed[at..at + 4].try_into().unwrap());
    let directory = usize::try_from(number(end + 16)).unwrap();
    assert!(packed[directory..].starts_with(b"PK\x01\x02"));
    assert_eq!(number(directory + 38) >> 16, 0o100_755, "the mode of the first");
    let size = usize::try_from(number(18)).unwrap();
    assert_eq!(decompress_to_vec(&packed[30 + 5..30 + 5 + size]).unwrap(), b"program ".repeat(100));
    let whole = zip(&[Entry::text("a".into(), "123456789")]).unwrap();
    assert_eq!(whole[14..18], 0xcbf4_3926_u32.to_le_bytes(), "the checksum everybody tests with");
}

#[test]
fn the_same_contents_are_the_same_bytes() {
    let built = built(&PLATFORMS[0]);
    let names = |packages: Vec<super::Package>| -> Vec<(String, String)> {
        packages.into_iter().map(|package| (package.name, sha256(&package.bytes))).collect()
    };
    let once = names(built.packages(&values()).unwrap());
    assert_eq!(once, names(built.packages(&values()).unwrap()));
    let expected = [
        archive(VERSION, built.target),
        bundle(VERSION, built.platform),
        format!("npm/{}-file-editor-linux-x64-{VERSION}.tgz", values().get("owner_lowercase")),
        "docker/amd64/file-editor".into(),
    ];
    assert_eq!(once.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), expected);
}

fn built(platform: &'static Platform) -> Built {
    let program = |name: &str| (format!("{name}{}", platform.exe()), name.as_bytes().to_vec());
    let programs = super::platform::BINARIES.map(program).to_vec();
    let manual = Manual(FILES.map(|(path, _)| path.into()).to_vec());
    Built { target: platform.targets[0], platform, programs, manual }
}

#[test]
fn a_binary_stays_under_ten_megabytes() {
    assert_eq!(LIMIT, 10_000_000);
    assert!(check_size("target", "file-editor", LIMIT - 1).is_ok());
    let refused = check_size("target", "file-editor", LIMIT).unwrap_err();
    assert_eq!(
        refused,
        "target: file-editor has 10000000 bytes, and must have fewer than 10000000"
    );
}

#[test]
fn an_unknown_target_is_told_the_known_ones() {
    let refused = choose(&["sparc-sun-solaris"], &mut super::Report::default());
    let reason = refused.err().unwrap();
    assert!(reason.starts_with("sparc-sun-solaris is none of x86_64-unknown-linux-gnu, "));
}

#[test]
fn npm_has_a_package_for_every_platform() {
    let wrapper: Value = serde_json::from_str(&values().file("npm/package.json").unwrap()).unwrap();
    assert_eq!(wrapper["version"], VERSION);
    let owner = values().get("owner_lowercase").to_owned();
    let prefix = format!("@{owner}/file-editor-");
    let named = wrapper["optionalDependencies"].as_object().unwrap();
    let platforms = named.keys().map(|name| name.strip_prefix(&prefix).unwrap());
    assert_eq!(platforms.collect::<BTreeSet<_>>(), platform_names());
    assert!(named.values().all(|version| version == VERSION));
    for platform in &PLATFORMS {
        let text = values().with_platform(platform).file("npm/platform.json").unwrap();
        let package: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(package["name"], format!("{prefix}{}", platform.name));
        assert_eq!(package["version"], VERSION);
        assert_eq!(package["os"][0], platform.system);
        assert_eq!(package["cpu"][0], platform.processor);
    }
    assert!(npm_wrapper(&values()).is_ok());
}

#[test]
fn a_bundle_says_what_it_runs_on() {
    for platform in &PLATFORMS {
        let text = values().with_platform(platform).file("mcpb/manifest.json").unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(manifest["version"], VERSION);
        assert_eq!(manifest["compatibility"]["platforms"][0], platform.system);
        let entry = format!("server/file-editor{}", platform.exe());
        assert_eq!(manifest["server"]["entry_point"], entry);
        assert_eq!(manifest["server"]["mcp_config"]["command"], format!("${{__dirname}}/{entry}"));
    }
}

/// By the rules of the schema it names, as far as they concern what we say.
#[test]
fn the_registry_is_told_of_every_bundle() {
    let text = all_values().file("server.json").unwrap();
    let server: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(server["version"], VERSION);
    let length = |key: &str| server[key].as_str().unwrap().chars().count();
    assert!((3..=200).contains(&length("name")));
    assert!((1..=100).contains(&length("title")) && (1..=100).contains(&length("description")));
    let (namespace, name) = server["name"].as_str().unwrap().split_once('/').unwrap();
    assert!(namespace.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c)));
    assert_eq!(name, "file-editor");
    let npm: Value = serde_json::from_str(&values().file("npm/package.json").unwrap()).unwrap();
    assert_eq!(npm["mcpName"], server["name"]);
    assert!(values().file("Dockerfile").unwrap().contains(server["name"].as_str().unwrap()));
    let mut bundles = BTreeSet::new();
    for package in server["packages"].as_array().unwrap() {
        assert_eq!(package["transport"]["type"], "stdio");
        let identifier = package["identifier"].as_str().unwrap();
        match package["registryType"].as_str().unwrap() {
            "mcpb" => {
                let sum = package["fileSha256"].as_str().unwrap();
                assert!(sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()));
                bundles.insert(identifier.rsplit_once('/').unwrap().1.to_owned());
            }
            "npm" => assert_eq!(
                (npm["name"].as_str(), &package["version"]),
                (Some(identifier), &npm["version"])
            ),
            "oci" => assert!(identifier.ends_with(&format!("/file-editor:{VERSION}"))),
            other => panic!("{other}"),
        }
    }
    let expected = PLATFORMS.iter().map(|platform| bundle(VERSION, platform));
    assert_eq!(bundles, expected.collect());
}

#[test]
fn the_formula_names_archives_that_are_made() {
    let formula = all_values().file("homebrew/file-editor.rb").unwrap();
    assert!(formula.contains(&format!("version \"{VERSION}\"")));
    let named = formula.lines().filter_map(|line| line.trim().strip_prefix("url \""));
    let named: BTreeSet<_> =
        named.map(|url| url.rsplit_once('/').unwrap().1.trim_end_matches('"').to_owned()).collect();
    let expected = PLATFORMS.iter().filter(|platform| platform.system != "win32");
    let expected = expected.map(|platform| archive(VERSION, platform.targets[0]));
    assert_eq!(named, expected.collect());
}

/// Every file that the formula names, as it lies in an archive.
#[test]
fn the_formula_installs_what_is_in_the_archives() {
    let formula = file("packaging/homebrew/file-editor.rb");
    let (_, install) = formula.split_once("def install\n").unwrap();
    let (install, _) = install.split_once("  end\n").unwrap();
    let mut missing: BTreeSet<&str> = FILES.iter().map(|(path, _)| *path).collect();
    for quoted in install.split('"').skip(1).step_by(2).filter(|quoted| quoted.contains('/')) {
        assert!(missing.remove(quoted), "{quoted}");
    }
    // Homebrew has no place for it on the machines that it is for.
    assert_eq!(missing.into_iter().collect::<Vec<_>>(), ["completions/file-editor.ps1"]);
    for platform in &PLATFORMS {
        let built = built(platform);
        let archive = &built.packages(&values()).unwrap()[0];
        let bytes = if archive.name.ends_with("zip") {
            archive.bytes.clone()
        } else {
            decompress_to_vec(&archive.bytes[10..archive.bytes.len() - 8]).unwrap()
        };
        let stem = super::platform::stem(VERSION, built.target);
        for (path, _) in FILES {
            let name = format!("{stem}/{path}");
            assert!(memmem(&bytes, name.as_bytes()), "{name}");
        }
    }
}

fn memmem(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

#[test]
fn a_release_builds_every_platform() {
    let workflow = file(".github/workflows/release.yml");
    let named = workflow.lines().filter_map(|line| line.trim().strip_prefix("target: "));
    let named: Vec<_> = named.map(|target| Platform::of(target).unwrap().name).collect();
    assert_eq!(named.len(), PLATFORMS.len());
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), platform_names());
}

/// `cargo binstall` fills gaps of its own in these lines.
#[test]
fn binstall_finds_the_archives() {
    let manifest = file("crates/file-editor/Cargo.toml");
    let section = |name: &str| {
        let start = format!("[package.metadata.binstall{name}]\n");
        manifest.split_once(&start).map(|(_, rest)| rest.split("\n[").next().unwrap().to_owned())
    };
    let common = section("").unwrap();
    let value = |section: &str, key: &str| {
        let line = section.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        line.map(|line| line.trim_end_matches('"').to_owned())
    };
    let targets = PLATFORMS.iter().flat_map(|platform| platform.targets).copied();
    // Who has the other compiler on Windows runs the same program.
    let asked = targets.map(|target| (target, target));
    let asked = asked.chain([("x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu")]);
    for (target, made) in asked {
        let own = section(&format!(".overrides.{target}")).unwrap_or_default();
        let fill = |key: &str| {
            let line = value(&own, key).or_else(|| value(&common, key)).unwrap();
            line.replace("{ repo }", REPOSITORY)
                .replace("{ version }", VERSION)
                .replace("{ target }", target)
        };
        let download = values().get("download").to_owned();
        assert_eq!(fill("pkg-url"), format!("{download}/{}", archive(VERSION, made)));
        assert_eq!(
            fill("bin-dir"),
            format!("{}/{{ bin }}{{ binary-ext }}", super::platform::stem(VERSION, made))
        );
        let format = if archive(VERSION, made).ends_with("zip") { "zip" } else { "tgz" };
        assert_eq!(fill("pkg-fmt"), format);
    }
}

#[test]
fn what_is_said_of_all_waits_for_all() {
    let folder = std::env::temp_dir().join(format!("file-editor-dist-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let names = |index: &index::Index| -> Vec<String> {
        index.files.iter().map(|file| file.name.clone()).collect()
    };
    let always =
        ["SHA256SUMS".into(), "docker/Dockerfile".into(), format!("npm/file-editor-{VERSION}.tgz")];
    for (at, platform) in PLATFORMS.iter().enumerate() {
        let index = index::make(&folder, &values()).unwrap();
        assert_eq!(names(&index), always);
        let left: Vec<_> = PLATFORMS[at..].iter().map(|platform| platform.name).collect();
        let left = left.join(", ");
        assert_eq!(index.missing[0], format!("server.json: needs the packages for {left}"));
        // The last of its targets will do.
        let target = platform.targets.last().unwrap();
        fs::write(folder.join(archive(VERSION, target)), target).unwrap();
        fs::write(folder.join(bundle(VERSION, platform)), platform.name).unwrap();
    }
    fs::write(folder.join("file-editor-0.0.0-of-another-version.tar.gz"), "").unwrap();
    let index = index::make(&folder, &values()).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(index.missing.is_empty());
    let text = |name: &str| {
        let file = index.files.iter().find(|file| file.name == name).unwrap();
        String::from_utf8(file.bytes.clone()).unwrap()
    };
    let sums = text("SHA256SUMS");
    assert_eq!(sums.lines().count(), 2 * PLATFORMS.len());
    for platform in &PLATFORMS {
        let target = platform.targets.last().unwrap();
        let (of_archive, of_bundle) = (sha256(target.as_bytes()), sha256(platform.name.as_bytes()));
        assert!(sums.contains(&format!("{of_archive}  {}\n", archive(VERSION, target))));
        assert!(sums.contains(&format!("{of_bundle}  {}\n", bundle(VERSION, platform))));
        assert!(text("server.json").contains(&of_bundle));
        let in_formula = text("file-editor.rb").contains(&of_archive);
        assert_eq!(in_formula, platform.system != "win32", "{target}");
    }
}

/// Its owner is a gap in every file that is filled, and the same in those that are not.
#[test]
fn the_owner_is_named_once() {
    let owner = values().get("owner").to_owned();
    for path in ["docs/install.md", "README.md"] {
        for rest in file(path).split("https://github.com/").skip(1) {
            let mut parts = rest.split(|c: char| c != '-' && !c.is_ascii_alphanumeric());
            let (found, name) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            assert!(name != "file-editor" || found == owner, "{path} names {found}");
        }
    }
    let (document, values) = (file("docs/install.md"), values());
    assert!(document.contains(&format!("ghcr.io/{}/file-editor", values.get("owner_lowercase"))));
    assert!(document.contains(&format!("brew install {owner}/tap/file-editor")));
    for path in ["mcpb/manifest.json", "server.json", "npm/package.json", "Dockerfile"] {
        assert!(!file(&format!("packaging/{path}")).contains("github.com/"), "{path}");
    }
}

#[test]
fn commands_and_targets_that_are_named_exist() {
    for path in [".github/workflows/ci.yml", ".github/workflows/release.yml", "docs/install.md"] {
        for rest in file(path).split("cargo xtask ").skip(1) {
            let word = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap();
            assert!(crate::USAGE.contains(&format!("\n  {word} ")), "{path}: cargo xtask {word}");
        }
    }
    for target in PLATFORMS.iter().flat_map(|platform| platform.targets) {
        assert!(file("docs/install.md").contains(&format!("`{target}`")), "{target}");
    }
}
