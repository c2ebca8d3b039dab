//! Where the file itself begins and ends in a text.

use crate::kind::FileKind;

/// Empties what stands before and after the file, and cannot be part of one of its kind. Lines keep their numbers.
pub(crate) fn trimmed(kind: FileKind, text: &str) -> String {
    if let Some(root) = root(kind) {
        return element(root, text);
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let is_part = |line: &&&str| !line.trim().is_empty() && may_be_part(kind, line);
    let first = lines.iter().position(|line| is_part(&line)).unwrap_or(0);
    let last = lines.iter().rposition(|line| is_part(&line)).unwrap_or(lines.len());
    let is_inside = |number: usize| (first..=last).contains(&number);
    let kept = (0..).zip(&lines).map(|(number, line)| if is_inside(number) { *line } else { "" });
    kept.collect::<Vec<_>>().join("\n")
}

/// The root element of a kind of XML.
fn root(kind: FileKind) -> Option<&'static str> {
    Some(match kind {
        FileKind::NcclXml => "system",
        FileKind::Hwloc => "topology",
        FileKind::GraphMl => "graphml",
        FileKind::SimGrid => "platform",
        _ => return None,
    })
}

/// The text from the first start to the last end of an element, on its lines.
fn element(root: &str, text: &str) -> String {
    let Some(start) = text.find(&format!("<{root}")) else { return text.to_owned() };
    let end_tag = format!("</{root}>");
    let end = text.rfind(&end_tag).map_or(text.len(), |end| end + end_tag.len());
    let (before, inside) = (text.get(..start).unwrap_or_default(), text.get(start..end).unwrap_or(text));
    "\n".repeat(before.matches('\n').count()) + inside
}

/// Whether a line can begin or end a file of a kind; prose cannot.
fn may_be_part(kind: FileKind, line: &str) -> bool {
    let trimmed = line.trim();
    let begins = |starts: &[&str]| starts.iter().any(|start| trimmed.starts_with(start));
    match kind {
        FileKind::SlurmConf => trimmed.contains('=') || begins(&["#"]),
        FileKind::Csv => trimmed.contains(','),
        FileKind::IbNetDiscover => {
            begins(&["vendid=", "Switch\t", "Switch ", "Ca\t", "Ca ", "Rt\t", "[", "caguid=", "switchguid="])
        }
        FileKind::IbLinkInfo => line.contains("==(") || begins(&["Switch: ", "CA: ", "Router: "]),
        FileKind::Lldp => begins(&["{", "["]) || trimmed.ends_with(['}', ']']),
        FileKind::SlurmYaml
        | FileKind::Topograph
        | FileKind::KubernetesLabels
        | FileKind::AstraNetwork
        | FileKind::Own(_) => is_of_yaml(line),
        _ => true,
    }
}

/// Whether a line is indented, an item, a bracket, or has a key without blanks.
fn is_of_yaml(line: &str) -> bool {
    let key = line.split_once(':').filter(|(_, value)| value.is_empty() || value.starts_with([' ', '\t']));
    let has_key = key.is_some_and(|(key, _)| !key.is_empty() && !key.contains(char::is_whitespace));
    line.starts_with([' ', '\t', '-', '{', '}', '[', ']', '"', '#', '%']) || line.trim() == "..." || has_key
}
