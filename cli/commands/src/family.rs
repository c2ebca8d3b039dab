//! Which family a network is recognised as a member of, as JSON and as a line of text; and its boxes, as a hint.

use canopy_canonical::families::{LINKS_MAX, Recognition, made_of, recognise};
use canopy_canonical::{Budget, Stopped};
use canopy_topology::{Link, Topology};
use serde::Serialize;

/// The `family` member of JSON objects.
#[derive(Debug, Serialize)]
pub(crate) struct FamilySummary {
    /// Whether it is known which family it is, or that it is none.
    determined: bool,
    /// None where the network is none of those that are looked for by name, though it may be made of families.
    name: Option<&'static str>,
    /// Of the member that the network is, or, where that is not determined, may be; or what it is made of.
    expression: Option<String>,
    /// Of the member that a network of none would be if its links took no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_latencies: Option<String>,
}

impl FamilySummary {
    /// Finds out.
    ///
    /// # Errors
    /// The budget says to stop.
    pub(crate) fn of(topology: &Topology, budget: Budget<'_>) -> Result<Self, Stopped> {
        let (determined, name, expression) = match recognise(topology, budget)? {
            Recognition::Member(found) => (true, Some(found.family), Some(found.expression)),
            Recognition::Other => (true, None, made_of(topology, budget)?.map(|made| made.expression)),
            Recognition::Undetermined { expression } => (false, None, Some(expression)),
            Recognition::TooLarge => (false, None, None),
        };
        let latency = |link: &Link| link.latency;
        let differ = topology.links().windows(2).any(|pair| latency(&pair[0]) != latency(&pair[1]));
        let plain = topology.without_latencies().filter(|_| determined && expression.is_none() && differ);
        let without_latencies = match plain.map(|plain| recognise(&plain, budget)).transpose()? {
            Some(Recognition::Member(found)) => Some(found.expression),
            _ => None,
        };
        Ok(Self { determined, name, expression, without_latencies })
    }

    /// A line for people.
    pub(crate) fn line(&self) -> String {
        let words = match (self.determined, &self.expression) {
            (true, Some(expression)) => expression.clone(),
            (true, None) => match &self.without_latencies {
                Some(expression) => format!("{expression}, but for its latencies"),
                None => "none of those that expressions name".to_owned(),
            },
            (false, Some(expression)) => format!("perhaps {expression}; not determined within the budget of work"),
            (false, None) => format!("not looked for among more than {LINKS_MAX} links"),
        };
        format!("family     {words}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_words_of_its_own() {
        let line = |determined, expression: Option<&str>| {
            let expression = expression.map(str::to_owned);
            FamilySummary { determined, name: None, expression, without_latencies: None }.line()
        };
        assert_eq!(line(true, Some("ring:5,bw=1GB/s")), "family     ring:5,bw=1GB/s");
        assert_eq!(line(true, None), "family     none of those that expressions name");
        assert_eq!(
            line(false, Some("ring:5,bw=1GB/s")),
            "family     perhaps ring:5,bw=1GB/s; not determined within the budget of work"
        );
        let without_latencies = Some("ring:5,bw=1GB/s".to_owned());
        let slow = FamilySummary { determined: true, name: None, expression: None, without_latencies };
        assert_eq!(slow.line(), "family     ring:5,bw=1GB/s, but for its latencies");
        assert_eq!(line(false, None), "family     not looked for among more than 262144 links");
    }
}
