//! Measures the processor time of ranking the files of a folder, once they are in memory: `rank_folder <folder>
//! <query>...`, Linux only.

#![allow(clippy::print_stdout, reason = "a command talks to its user")]
#![allow(clippy::disallowed_methods, reason = "not part of the product")]

use std::error::Error;
use std::path::Path;

use code::rank::{RankQuery, Scan};

/// Runs of each query; the quickest counts, since other work of the machine only adds to it.
const RUNS: usize = 7;
const SHOWN: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("rank_folder <folder> <query>...")?;
    let mut files = Vec::new();
    read(Path::new(&folder), &mut files)?;
    files.sort();
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    println!("{} files, {bytes} bytes", files.len());

    for text in arguments {
        let mut quickest = f64::INFINITY;
        for _ in 0..RUNS {
            let start = processor_time()?;
            let query = RankQuery::new(&text, []);
            let scan = Scan::new(&query);
            for (path, text) in &files {
                scan.visit(path, text);
            }
            let ranking = scan.finish(SHOWN);
            for hit in &ranking.best_files {
                if let Ok(at) = files.binary_search_by(|(path, _)| path.cmp(&hit.path)) {
                    std::hint::black_box(ranking.term_lines(&files[at].1).best(60));
                }
            }
            quickest = quickest.min(processor_time()? - start);
        }
        println!("{quickest:.1} ms on one thread: {text}");
    }
    Ok(())
}

/// Processor time of this thread in milliseconds: others may work on this machine too.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = told.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}

fn read(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            read(&entry.path(), files)?;
        } else if entry.file_type()?.is_file() {
            files.push((entry.path().to_string_lossy().into_owned(), std::fs::read(entry.path())?));
        }
    }
    Ok(())
}
