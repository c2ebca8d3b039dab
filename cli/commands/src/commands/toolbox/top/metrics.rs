//! Metrics in the text format of Prometheus, as far as this program looks at them.

/// The lines of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Metrics(Vec<Sample>);

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Sample {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.label(name) == Some(value))
    }
}

impl Metrics {
    /// Reads a page; lines of other forms are passed over.
    pub(super) fn read(page: &str) -> Self {
        Self(page.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect())
    }

    /// The sum of all samples of a name with these labels; 0 if there are none.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        // Not `sum`, whose zero is negative.
        let found = self.0.iter().filter(|sample| sample.name == name && sample.has(labels));
        found.fold(0.0, |sum, sample| sum + sample.value)
    }

    /// Whether there is a sample of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|sample| sample.name == name)
    }

    /// A quantile of what a histogram took up since an earlier page, interpolated within its bucket as Prometheus does; `None` if
    /// that is nothing.
    pub(super) fn quantile(&self, before: &Self, name: &str, labels: &[(&str, &str)], quantile: f64) -> Option<f64> {
        let (now, then) = (self.buckets(name, labels), before.buckets(name, labels));
        let at_most = |buckets: &[(f64, f64)], bound: f64| {
            buckets.iter().find(|(other, _)| other.total_cmp(&bound).is_eq()).map_or(0.0, |(_, count)| *count)
        };
        let new: Vec<(f64, f64)> =
            now.iter().map(|&(bound, count)| (bound, (count - at_most(&then, bound)).max(0.0))).collect();
        let total = new.last().map(|(_, count)| *count).filter(|total| *total > 0.0)?;
        let wanted = quantile * total;
        let place = new.iter().position(|(_, count)| *count >= wanted)?;
        let (bound, count) = new[place];
        let (lower, below) = place.checked_sub(1).map_or((0.0, 0.0), |place| new[place]);
        if bound.is_infinite() {
            return Some(lower);
        }
        let share = if count > below { (wanted - below) / (count - below) } else { 1.0 };
        Some(lower + (bound - lower) * share)
    }

    /// Upper bounds of buckets and how much was at most that, over all other labels.
    fn buckets(&self, name: &str, labels: &[(&str, &str)]) -> Vec<(f64, f64)> {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        let of_name = |sample: &&Sample| sample.name.strip_suffix("_bucket") == Some(name) && sample.has(labels);
        for sample in self.0.iter().filter(of_name) {
            let Some(bound) = sample.label("le").and_then(|bound| bound.parse::<f64>().ok()) else { continue };
            match buckets.iter_mut().find(|(other, _)| other.total_cmp(&bound).is_eq()) {
                Some((_, count)) => *count += sample.value,
                None => buckets.push((bound, sample.value)),
            }
        }
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        buckets
    }
}

/// `name{label="value",…} number`; values hold no escaped quotes that matter here.
fn sample(line: &str) -> Option<Sample> {
    let (head, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let (name, labels) = match head.split_once('{') {
        None => (head, ""),
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
    };
    let pair = |pair: &str| {
        let (name, value) = pair.split_once("=\"")?;
        Some((name.trim_start_matches(',').to_owned(), value.to_owned()))
    };
    let labels = labels.split_terminator('"').collect::<Vec<_>>();
    let labels = labels.chunks_exact(2).map(|both| pair(&both.join("\""))).collect::<Option<_>>()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
# HELP canopy_plan_latency_seconds Time to a plan.
# TYPE canopy_plan_latency_seconds histogram
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le16\",le=\"0.001\"} 1
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le16\",le=\"0.01\"} 1
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le16\",le=\"+Inf\"} 1
canopy_plan_latency_seconds_sum{cache=\"hit\",size_class=\"le16\"} 0.0005
canopy_leases_active 3
canopy_faults_active 0
this is not one
";
    const NOW: &str = "\
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le16\",le=\"0.001\"} 11
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le16\",le=\"0.01\"} 15
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le16\",le=\"+Inf\"} 16
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le128\",le=\"0.001\"} 0
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le128\",le=\"0.01\"} 5
canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le128\",le=\"+Inf\"} 5
canopy_plan_latency_seconds_bucket{cache=\"miss\",size_class=\"le16\",le=\"+Inf\"} 9
";

    #[test]
    fn samples_are_added_up_by_name_and_labels() {
        let metrics = Metrics::read(BEFORE);
        assert_eq!(["canopy_leases_active", "canopy_none"].map(|name| metrics.sum(name, &[]).to_string()), ["3", "0"]);
        assert!(metrics.has("canopy_faults_active") && !metrics.has("canopy_none"));
        let latency = "canopy_plan_latency_seconds_sum";
        assert_eq!(["hit", "miss"].map(|cache| metrics.sum(latency, &[("cache", cache)]).to_string()), ["0.0005", "0"]);
    }

    #[test]
    fn quantiles_are_those_of_what_came_since() {
        let (before, now) = (Metrics::read(BEFORE), Metrics::read(NOW));
        let hits = |quantile| now.quantile(&before, "canopy_plan_latency_seconds", &[("cache", "hit")], quantile);
        // 10 of 20 took at most a millisecond, 19 at most ten.
        assert_eq!(hits(0.5), Some(0.001));
        assert_eq!(hits(0.25), Some(0.0005));
        assert!((hits(0.9).unwrap() - (0.001 + 0.009 * 8.0 / 9.0)).abs() < 1e-12);
        assert_eq!(hits(0.99), Some(0.01), "above the last bound nothing is known");
        assert_eq!(now.quantile(&now, "canopy_plan_latency_seconds", &[("cache", "hit")], 0.5), None);
        assert_eq!(now.quantile(&before, "canopy_none", &[], 0.5), None);
    }

    #[test]
    fn labels_may_hold_commas_and_braces() {
        let metrics = Metrics::read("a{x=\"1,2}\",y=\"=\"} 4\na{x=\"3\"} 1e3");
        assert_eq!(metrics.sum("a", &[("x", "1,2}"), ("y", "=")]).to_string(), "4");
        assert_eq!(metrics.sum("a", &[]).to_string(), "1004");
    }
}
