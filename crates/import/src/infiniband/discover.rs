//! The output of `ibnetdiscover`: a record for each device, with a line for each port that has a cable.

use canopy_topology::{Capacity, shorten};

use super::rates::Speed;
use super::subnet::{End, Role, Subnet};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::source::Source;

const KIND: FileKind = FileKind::IbNetDiscover;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.contains("\nvendid=") || start.contains("\n# topology file: generated on")
}

/// Lines that say nothing of the network's shape.
const SKIPPED: [&str; 9] =
    ["#", "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "Chassis ", "Hostname:"];
/// Lines that programs of the family write when they cannot ask a device.
const COMPLAINTS: [&str; 4] = ["ibwarn:", "ibpanic:", "src/", "./"];

/// Reads switches, adapters and cables.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let mut subnet = Subnet::new(KIND);
    let mut current = None;
    let mut complaints = 0;
    for line in source.lines() {
        let (number, line) = line?;
        let line = line.trim();
        let begins_with = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
        if line.is_empty() || begins_with(&SKIPPED) {
            continue;
        }
        if begins_with(&COMPLAINTS) {
            complaints += 1;
            continue;
        }
        let malformed = |what: &str| {
            let problem = format!("`{}` is not {what}; run `ibnetdiscover > FILE` again", shorten(line));
            FileError::at(KIND, number, problem)
        };
        if line.starts_with('[') {
            let port = PortLine::parse(line).ok_or_else(|| malformed("the line of a port"))?;
            let device = current.ok_or_else(|| malformed("below the device that it is of"))?;
            port.add(&mut subnet, number, device)?;
            continue;
        }
        current = Some(record(&mut subnet, line).ok_or_else(|| malformed("a line of ibnetdiscover"))?);
    }
    let mut fabric = subnet.finish(source)?;
    if complaints > 0 {
        let said = format!("{complaints} lines on devices that ibnetdiscover could not ask: the subnet may be larger");
        fabric.report.left_out.push(said);
    }
    Ok(Content::Fabric(fabric))
}

/// `Switch 65 "S-…" # "description" …`, with tabs.
fn record(subnet: &mut Subnet, line: &str) -> Option<usize> {
    let (word, rest) = line.split_once(char::is_whitespace)?;
    let role = match word {
        "Switch" => Role::Switch,
        "Ca" => Role::Adapter,
        "Rt" | "???" => Role::Other,
        _ => return None,
    };
    let (ids, comment) = rest.split_once('#')?;
    let (key, _) = ids.split_once('"')?.1.split_once('"')?;
    let (description, _) = quoted(comment)?;
    (!key.is_empty()).then(|| subnet.device(key, Some(role), description))
}

/// What stands in the outermost quotes, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.split_once('"')?.1.rsplit_once('"')
}

/// A port and what its cable leads to.
struct PortLine<'a> {
    port: u32,
    guid: Option<u64>,
    other: &'a str,
    other_port: u32,
    other_guid: Option<u64>,
    other_description: &'a str,
    rate: Option<Capacity>,
}

impl<'a> PortLine<'a> {
    /// `[port](guid) "key"[port](guid) # "description" lid 1 4xNDR`; GUIDs are of ports of adapters.
    fn parse(line: &'a str) -> Option<Self> {
        let (port, guid, rest) = port(line)?;
        let (other, rest) = rest.strip_prefix('"')?.split_once('"')?;
        let (other_port, other_guid, rest) = self::port(rest)?;
        let (other_description, end) = quoted(rest.strip_prefix('#')?)?;
        let mut words = end.split_whitespace();
        if words.next()? != "lid" || other.is_empty() {
            return None;
        }
        let (lanes, speed) = words.nth(1)?.split_once(['x', '?'])?;
        let rate = Speed::named(speed).and_then(|speed| speed.over(lanes));
        Some(Self { port, guid, other, other_port, other_guid, other_description, rate })
    }

    fn add(&self, subnet: &mut Subnet, line: usize, device: usize) -> Result<(), ImportError> {
        let role = match self.other.as_bytes().first() {
            Some(b'S') => Role::Switch,
            Some(b'H') => Role::Adapter,
            _ => Role::Other,
        };
        let other = subnet.device(self.other, Some(role), self.other_description);
        let ends = (End { device, port: self.port }, End { device: other, port: self.other_port });
        subnet.port(ends.0, self.guid);
        subnet.port(ends.1, self.other_guid);
        subnet.cable(line, ends, self.rate)
    }
}

/// `[1][ext 2](guid) `: the number, the GUID if there is one, and what follows.
fn port(text: &str) -> Option<(u32, Option<u64>, &str)> {
    let (number, mut rest) = text.strip_prefix('[')?.split_once(']')?;
    if let Some(external) = rest.strip_prefix("[ext") {
        rest = external.split_once(']')?.1;
    }
    rest = rest.trim_start();
    let mut guid = None;
    if let Some(inside) = rest.strip_prefix('(') {
        let (digits, after) = inside.split_once(')')?;
        guid = Some(u64::from_str_radix(digits, 16).ok()?);
        rest = after.trim_start();
    }
    Some((number.parse().ok()?, guid, rest))
}
