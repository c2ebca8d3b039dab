//! Lists of hosts as schedulers write them: Slurm and Flux hostlists, and files with one host per line.

use std::collections::HashSet;

/// Most hosts of one list.
const HOSTS_MAX: usize = 65_536;
/// Longest name of a host, as in DNS.
const NAME_BYTES_MAX: usize = 255;
/// Longest file of hosts that canopy reads: a list of [`HOSTS_MAX`] names.
pub const HOST_FILE_BYTES_MAX: usize = HOSTS_MAX * (NAME_BYTES_MAX + 1);
/// Most digits of a number in brackets: any such number fits 64 bits.
const DIGITS_MAX: usize = 18;

/// What is wrong with a name.
const NO_NAME: &str = "this is not a host name";

/// Errors of reading a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum HostsError {
    #[error("the list of nodes is empty")]
    Empty,
    #[error("`{item}` in the list of nodes: {what}; write names such as gpu7 and ranges such as gpu[001-016,020]")]
    Malformed { item: String, what: &'static str },
    #[error("the list of nodes names {name} twice; name it once")]
    Twice { name: String },
    #[error("the list of nodes mixes forms; write gpu[001-016], or names with blanks or `+` between them")]
    Mixed,
    #[error(
        "the JSON has no list of nodes at `execution.nodelist`; give the resource set of Flux (`flux job info ID R`), or a line for each node"
    )]
    NoNodeList,
    #[error("the list of nodes expands to more than {HOSTS_MAX} hosts; use a shorter one")]
    TooMany,
}

/// Expands a hostlist such as `gpu[001-016,020],login1`, in its order.
///
/// Commas outside brackets separate items. An item may have several brackets, of which the last counts fastest; the
/// first number of a range says how many digits its numbers have. This is what `scontrol show hostnames` and
/// RFC 29 of Flux do.
///
/// # Errors
/// Malformed lists, hosts named twice, and more than 65,536 hosts, which are refused before they are expanded.
///
/// O(hosts · name length).
pub fn expand_hosts(text: &str) -> Result<Vec<String>, HostsError> {
    let mut hosts = Vec::new();
    for item in host_items(text)? {
        let pieces = pieces(item, HOSTS_MAX - hosts.len())?;
        let mut names = vec![String::new()];
        for piece in &pieces {
            names = names.iter().flat_map(|start| piece.iter().map(move |end| format!("{start}{end}"))).collect();
        }
        hosts.append(&mut names);
    }
    checked(hosts)
}

/// Reads a file with one host per line, such as `PBS_NODEFILE` or a host file of MPI.
///
/// A host that stands there once per slot counts once, where it stands first; what follows the name on a line, such as
/// `slots=8` or `:8`, and comments after `#` do not count.
///
/// # Errors
/// Names that can be none, no hosts at all, or more than 65,536.
pub fn read_host_lines(text: &str) -> Result<Vec<String>, HostsError> {
    let mut seen = HashSet::new();
    let names = text.lines().filter_map(|line| line.split('#').next()?.split_whitespace().next()?.split(':').next());
    let distinct: Vec<String> = names.filter(|name| seen.insert(*name)).map(str::to_owned).collect();
    if distinct.len() > HOSTS_MAX {
        return Err(HostsError::TooMany);
    }
    checked(distinct)
}

/// Names that can be names, each once.
fn checked(hosts: Vec<String>) -> Result<Vec<String>, HostsError> {
    if hosts.is_empty() {
        return Err(HostsError::Empty);
    }
    let mut seen = HashSet::new();
    for name in &hosts {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.len() > NAME_BYTES_MAX || !name.chars().all(plain) || name.starts_with('-') {
            return Err(malformed(name, NO_NAME));
        }
        if !seen.insert(name.as_str()) {
            return Err(HostsError::Twice { name: name.clone() });
        }
    }
    Ok(hosts)
}

/// The items between commas outside brackets, not expanded.
///
/// # Errors
/// Brackets that do not match, and items that are empty.
pub fn host_items(text: &str) -> Result<Vec<&str>, HostsError> {
    let (mut items, mut start, mut open) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if open => return Err(malformed(text, "a bracket opens inside a bracket")),
            '[' => open = true,
            ']' if !open => return Err(malformed(text, "a bracket closes without an opening one")),
            ']' => open = false,
            ',' if !open => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if open {
        return Err(malformed(text, "a bracket does not close"));
    }
    items.push(&text[start..]);
    let items: Vec<&str> = items.into_iter().map(str::trim).collect();
    match items.as_slice() {
        [""] => Err(HostsError::Empty),
        _ if items.contains(&"") => Err(malformed(text, "a name between commas is missing")),
        _ => Ok(items),
    }
}

/// The alternatives of each part of an item that stands for so many hosts at most: one for plain text, many for a bracket.
fn pieces(item: &str, hosts_max: usize) -> Result<Vec<Vec<String>>, HostsError> {
    let (mut pieces, mut rest) = (Vec::new(), item);
    let (mut hosts, mut name_bytes) = (1_usize, 0);
    while let Some((plain, bracket)) = rest.split_once('[') {
        let (inner, after) = bracket.split_once(']').ok_or_else(|| malformed(item, "a bracket does not close"))?;
        let mut numbers = Vec::new();
        for range in inner.split(',') {
            append_range(&mut numbers, range).map_err(|what| match what {
                Some(what) => malformed(item, what),
                None => HostsError::TooMany,
            })?;
        }
        // Both grow with each bracket, so nothing is built that is refused in the end.
        hosts = hosts.saturating_mul(numbers.len());
        name_bytes += plain.len() + numbers.iter().map(String::len).min().unwrap_or_default();
        if hosts > hosts_max {
            return Err(HostsError::TooMany);
        }
        if name_bytes > NAME_BYTES_MAX {
            return Err(malformed(item, NO_NAME));
        }
        pieces.push(vec![plain.to_owned()]);
        pieces.push(numbers);
        rest = after;
    }
    if hosts > hosts_max {
        return Err(HostsError::TooMany);
    }
    pieces.push(vec![rest.to_owned()]);
    Ok(pieces)
}

/// Appends `7` or `001-016`; `None` as error where that is more than a list may hold.
fn append_range(numbers: &mut Vec<String>, range: &str) -> Result<(), Option<&'static str>> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |digits: &str| {
        let is_number = (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { digits.parse::<u64>().ok() } else { None }.ok_or(Some("brackets must hold numbers and ranges"))
    };
    let (low, high) = (number(first)?, number(last)?);
    if low > high {
        return Err(Some("a range ends before it starts"));
    }
    if high - low >= HOSTS_MAX as u64 || numbers.len() >= HOSTS_MAX {
        return Err(None);
    }
    let width = first.len();
    numbers.extend((low..=high).map(|number| format!("{number:0width$}")));
    Ok(())
}

fn malformed(item: &str, what: &'static str) -> HostsError {
    HostsError::Malformed { item: item.chars().take(200).collect(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(expand_hosts(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn ranges_keep_their_digits_and_their_order() {
        check("gpu7", &["gpu7"]);
        check("gpu[001-003,020]", &["gpu001", "gpu002", "gpu003", "gpu020"]);
        check("gpu[8-11]", &["gpu8", "gpu9", "gpu10", "gpu11"]);
        check("b,a[2,1]", &["b", "a2", "a1"]);
        check("r[1-2]n[01-02]-ib", &["r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"]);
        check("gpu[099-101], cpu1", &["gpu099", "gpu100", "gpu101", "cpu1"]);
        assert_eq!(expand_hosts("n[0-65535]").unwrap().len(), HOSTS_MAX);
    }

    #[test]
    fn what_is_no_hostlist_is_refused() {
        for text in [
            "gpu[1",
            "gpu1]",
            "gpu[]",
            "gpu[a-b]",
            "gpu[3-1]",
            "gpu[1-]",
            "gpu[[1]]",
            "a,,b",
            "a,",
            "a b",
            "gpu$1",
            "gpu[1-2-3]",
            "gpu[1000000000000000000000]",
            "-x",
            "gpu/1",
            "gpu\n1",
        ] {
            assert!(
                matches!(expand_hosts(text), Err(HostsError::Malformed { .. })),
                "{text}: {:?}",
                expand_hosts(text)
            );
        }
        assert_eq!(expand_hosts(""), Err(HostsError::Empty));
        assert_eq!(expand_hosts("a[1-2],a2"), Err(HostsError::Twice { name: "a2".to_owned() }));
    }

    #[test]
    fn lists_without_end_are_refused_before_they_are_built() {
        for text in [
            "n[0-65536]",
            "n[0-999999999999999999]",
            "r[1-1000]n[1-1000]",
            "n[0-65535],m",
            "a[1-60000,1-60000,1-60000]",
        ] {
            assert_eq!(expand_hosts(text), Err(HostsError::TooMany), "{text}");
        }
        let many = |bracket: &str| expand_hosts(&format!("n{}", bracket.repeat(100_000)));
        assert_eq!(many("[0-65535]"), Err(HostsError::TooMany));
        assert!(matches!(many("[7]"), Err(HostsError::Malformed { .. })));
    }

    #[test]
    fn a_host_per_slot_counts_once() {
        let file = "# made by the scheduler\nn1\nn1\nn2 slots=8\n\n  n1\nn3#rack 4\n";
        assert_eq!(read_host_lines(file).unwrap(), ["n1", "n2", "n3"]);
        assert_eq!(read_host_lines("\n#\n"), Err(HostsError::Empty));
    }
}
