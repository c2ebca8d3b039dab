//! The output of `iblinkinfo`, also with `--line`: a line for each port, with or without a cable.
//!
//! Only with `--line` both ends have GUIDs. Otherwise devices are known by their LIDs, which are unique in a subnet: a
//! switch has one, and each port of an adapter.

use canopy_topology::{Capacity, shorten};

use super::rates::Speed;
use super::subnet::{End, Role, Subnet};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::source::Source;

const KIND: FileKind = FileKind::IbLinkInfo;

/// What stands before and after the state of a link.
const BEFORE: &str = "==(";
const AFTER: &str = "==>";

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.lines().any(|line| line.split_once(BEFORE).is_some_and(|(_, rest)| rest.contains(AFTER)))
}

/// Reads switches, adapters and cables that are active.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let mut subnet = Subnet::new(KIND);
    let mut header = None;
    let mut inactive_count = 0;
    for line in source.lines() {
        let (number, line) = line?;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let malformed = || {
            let problem = format!("`{}` is no line of iblinkinfo; run `iblinkinfo --line > FILE` again", shorten(line));
            FileError::at(KIND, number, problem)
        };
        if !line.contains(BEFORE) {
            header = Some(Header::parse(line).ok_or_else(malformed)?);
            continue;
        }
        let port = PortLine::parse(line).ok_or_else(malformed)?;
        inactive_count += usize::from(port.remote.is_some() && !port.is_active);
        port.add(&mut subnet, number, header.as_ref())?;
    }
    let mut fabric = subnet.finish(source)?;
    if inactive_count > 0 {
        fabric.report.left_out.push(format!("{inactive_count} ports with a cable that is not active"));
    }
    Ok(Content::Fabric(fabric))
}

/// `Switch: 0x… description:` or `CA: description:`.
struct Header<'a> {
    role: Role,
    description: &'a str,
}

impl<'a> Header<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (word, rest) = line.trim().split_once(':')?;
        let description = rest.trim().strip_suffix(':')?;
        let (role, description) = match word {
            "Switch" => (Role::Switch, guid(description)?.1),
            "CA" => (Role::Adapter, description),
            "Router" | "??" => (Role::Other, description),
            _ => return None,
        };
        Some(Self { role, description })
    }
}

/// A GUID and what follows.
fn guid(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.trim_start().strip_prefix("0x")?.split_once(char::is_whitespace)?;
    Some((u64::from_str_radix(digits, 16).ok()?, rest.trim_start()))
}

/// An end of a link as a line has it.
struct Place<'a> {
    guid: Option<u64>,
    description: Option<&'a str>,
    lid: u32,
    port: u32,
}

impl Place<'_> {
    /// What the device is known by: GUIDs where both ends have them, else LIDs.
    fn key(&self, has_guids: bool) -> String {
        match self.guid {
            Some(guid) if has_guids => format!("0x{guid:016x}"),
            _ => format!("lid {}", self.lid),
        }
    }
}

/// A line of a port.
struct PortLine<'a> {
    local: Place<'a>,
    remote: Option<Place<'a>>,
    rate: Option<Capacity>,
    is_active: bool,
}

impl<'a> PortLine<'a> {
    /// `[0x… ["name"]] lid port[ext] ==( width speed state/ physical)==> [0x…] lid port[ext] "name" ( )`.
    fn parse(line: &'a str) -> Option<Self> {
        let (left, rest) = line.split_once(BEFORE)?;
        let (state, right) = rest.split_once(AFTER)?;
        let mut local = (None, left);
        if let Some((guid, rest)) = guid(left) {
            local = (Some(guid), rest);
        }
        let (guid, mut rest) = local;
        let mut description = None;
        if let Some(inside) = rest.strip_prefix('"') {
            let (name, after) = inside.rsplit_once('"')?;
            (description, rest) = (Some(name.trim()), after);
        }
        let (lid, port) = lid_and_port(rest)?;
        let local = Place { guid, description, lid, port };
        let (rate, is_active) = self::state(state)?;
        Some(Self { local, remote: remote(right)?, rate, is_active })
    }

    fn add(&self, subnet: &mut Subnet, line: usize, header: Option<&Header<'_>>) -> Result<(), ImportError> {
        let Place { lid, port, .. } = self.local;
        // With `--line` each line names its device, and nothing says what the device is.
        let has_guids = self.local.description.is_some();
        let description = self.local.description.or(header.map(|header| header.description)).unwrap_or_default();
        let role = header.map(|header| header.role).filter(|_| !has_guids);
        if !has_guids
            && (header.is_none()
                || self.is_active && (lid == 0 || self.remote.as_ref().is_some_and(|remote| remote.lid == 0)))
        {
            let problem = "the line says neither by GUID nor by LID which device it is of; run `iblinkinfo --line`";
            return Err(FileError::at(KIND, line, problem).into());
        }
        if !has_guids && !self.is_active {
            return Ok(());
        }
        let device = subnet.device(&self.local.key(has_guids), role, description);
        let local = End { device, port };
        subnet.port(local, self.local.guid);
        let Some(remote) = self.remote.as_ref().filter(|_| self.is_active) else { return Ok(()) };
        let device = subnet.device(&remote.key(has_guids), None, remote.description.unwrap_or_default());
        let other = End { device, port: remote.port };
        subnet.port(other, remote.guid);
        subnet.cable(line, (local, other), self.rate)
    }
}

/// `  7   1[  ]`; the number in brackets is on the case of the switch.
fn lid_and_port(text: &str) -> Option<(u32, u32)> {
    let (numbers, _) = text.split_once('[')?;
    let mut words = numbers.split_whitespace();
    let found = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(found)
}

/// The rate, and whether the link is active: ` 4X  53.125 Gbps Active/  LinkUp)`.
fn state(text: &str) -> Option<(Option<Capacity>, bool)> {
    let (before, _) = text.split_once('/')?;
    let mut words: Vec<&str> = before.split_whitespace().collect();
    let is_active = words.pop()? == "Active";
    let lanes = words.first().and_then(|width| width.strip_suffix('X'));
    let is_fdr10 = words.contains(&"(FDR10)");
    let speed = match words.get(1) {
        _ if is_fdr10 => Speed::named("FDR10"),
        Some(gigabits) => Speed::signalled(gigabits),
        None => None,
    };
    Some((speed.zip(lanes).and_then(|(speed, lanes)| speed.over(lanes)), is_active))
}

/// What is at the other end: `Some(None)` if nothing is.
fn remote(text: &str) -> Option<Option<Place<'_>>> {
    let (start, rest) = text.split_once('"')?;
    let (name, _) = rest.rsplit_once('"')?;
    let (guid, start) = guid(start).map_or((None, start), |(guid, rest)| (Some(guid), rest));
    if start.trim().is_empty() || start.trim_start().starts_with('[') {
        return Some(None);
    }
    let (lid, port) = lid_and_port(start)?;
    Some(Some(Place { guid, description: Some(name.trim()), lid, port }))
}
