//! The values of `docs/seeds.md`: they are the published ones or say why not, and the commands give them.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use canopy_benches::seeds::{Row, RowError, Runner, rows, with_counts};
use canopy_tests::{binary, workspace};

const THREADS: usize = 2;

fn path() -> PathBuf {
    workspace().join("docs/seeds.md")
}

fn page() -> String {
    fs::read_to_string(path()).expect("docs/seeds.md")
}

/// Every value that differs says what became of it, and the page counts them.
#[test]
fn outcomes_are_counted() -> Result<(), RowError> {
    let page = page();
    assert!(rows(&page)?.len() > 450);
    assert_eq!(with_counts(&page)?, page, "the counts are written with CANOPY_APPROVE=1");
    Ok(())
}

/// All rows but the slow ones. `CANOPY_APPROVE=1` writes what they give; the program `seeds` runs the slow ones, too.
#[test]
fn commands_give_the_values_of_the_page() -> Result<(), RowError> {
    let text = page();
    let quick: Vec<Row> = rows(&text)?.into_iter().filter(|row| !row.is_slow).collect();
    let (canopy, next) = (binary("canopy"), AtomicUsize::new(0));
    let runner = Runner::new(&canopy, workspace());
    let work = || -> Vec<(usize, Result<String, RowError>)> {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let numbered = numbers.map_while(|number| Some((number, quick.get(number)?)));
        numbered.map(|(number, row)| (number, runner.value(row))).collect()
    };
    let found: Vec<_> = thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| scope.spawn(work));
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread ends")).collect()
    });
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut wrong = Vec::new();
    for (number, value) in found {
        let row = &quick[number];
        let value = value?;
        if value != row.ours {
            wrong.push(format!("{}: {} instead of {}", row.place, value, row.ours));
            lines[row.line] = Row::with_value(&lines[row.line], &value);
        }
    }
    if std::env::var_os("CANOPY_APPROVE").is_some() {
        fs::write(path(), with_counts(&(lines.join("\n") + "\n"))?)?;
        return Ok(());
    }
    assert!(
        wrong.is_empty(),
        "docs/seeds.md says otherwise; if intended, rerun with CANOPY_APPROVE=1\n{}",
        wrong.join("\n")
    );
    Ok(())
}
