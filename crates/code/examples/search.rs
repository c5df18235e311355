//! Searches a folder and tells what that took, to be compared with other programs:
//! `search <folder> <pattern> [results] [show]`, where `show` is `lines` (all of the page) or `counts`.

#![allow(clippy::print_stdout, reason = "it is what it is for")]

use std::{
    env,
    error::Error,
    path::Path,
    time::{Duration, Instant},
};

use code::search::{Pattern, PatternOptions, ResultKind, SearchOptions, search};
use files::{
    Call, DirPath, Root,
    tree::{Globs, TreeOptions},
};

fn main() -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, pattern, more @ ..] = arguments.as_slice() else {
        return Err("search <folder> <pattern> [results] [lines|counts]".into());
    };
    let max_results = more.first().map_or(Ok(100), |count| count.parse())?;
    let prints = more.get(1).map(String::as_str);
    let options = SearchOptions {
        tree: TreeOptions {
            within: DirPath::root(),
            globs: Globs::default(),
            hidden: false,
            ignored: false,
            max_size: 10 << 20,
        },
        show: if prints == Some("counts") { ResultKind::Counts } else { ResultKind::Lines },
        before: 0,
        after: 0,
        max_results,
        cursor: None,
    };
    let root = Root::open(Path::new(folder))?;
    let pattern = Pattern::new(pattern, PatternOptions::default())?;
    let call = Call::until(Instant::now() + Duration::from_mins(1));
    let found = search(&root, &pattern, &options, &call)?;
    if prints.is_some() {
        for file in &found.files {
            println!("{} {} {}", file.path, file.hash, file.matching_lines);
            for line in &file.lines {
                println!("{}:{}", line.number + 1, line.text);
            }
        }
    }
    println!(
        "{} lines in {} of {} files, {} cut, {:?}, next {:?}, {:.1} ms",
        found.matching_lines,
        found.matching_files,
        found.searched_files,
        found.cut_files,
        found.skipped,
        found.next,
        began.elapsed().as_secs_f64() * 1000.0,
    );
    Ok(())
}
