use std::time::Duration;

use tonic::Code;

use super::names::{COUNTERS, GAUGES, HISTOGRAMS};
use super::{Metrics, Timed, size_class};

#[test]
fn names_are_declared_once_and_buckets_belong_to_histograms() {
    let plain = COUNTERS.iter().chain(GAUGES).map(|(name, _)| *name);
    let mut names: Vec<&str> = plain.chain(HISTOGRAMS.iter().map(|(name, ..)| *name)).collect();
    assert!(names.iter().all(|name| name.starts_with("canopy_")));
    for (name, _, buckets) in HISTOGRAMS {
        assert!(!buckets.is_empty() && buckets.is_sorted(), "{name}");
    }
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn each_registry_is_its_own_and_none_shows_nothing() {
    let (first, second, off) = (Metrics::on(), Metrics::on(), Metrics::off());
    let time = Timed { time: Duration::from_millis(3), trace_id: Some(0xabc) };
    for metrics in [&first, &off] {
        metrics.plan_request("allgather", "CACHE_OUTCOME_HIT", Code::Ok, 16, time);
        drop(metrics.going_on("canopy_synthesis_running", &[]));
    }
    let line = "canopy_plan_requests_total{collective=\"allgather\",cache=\"hit\",outcome=\"ok\"} 1\n";
    assert!(first.render().contains(line), "{}", first.render());
    assert!(
        first
            .render()
            .contains("canopy_plan_latency_seconds_bucket{cache=\"hit\",size_class=\"le16\",le=\"0.005\"} 1\n")
    );
    assert!(first.render().contains("canopy_synthesis_running 0.0\n"));
    assert!(!second.render().contains("canopy_plan_requests_total{"));
    assert_eq!(off.render(), "");
    let open = first.render_open_metrics();
    let bucket = "canopy_plan_latency_seconds_bucket{le=\"0.005\",cache=\"hit\",size_class=\"le16\"} 1 # \
        {trace_id=\"00000000000000000000000000000abc\"} 0.003 ";
    assert!(open.contains(bucket) && open.ends_with("# EOF\n"), "{open}");
}

#[test]
fn sizes_fall_into_five_classes() {
    let classes = [(0, "le16"), (16, "le16"), (17, "le64"), (256, "le256"), (1024, "le1024"), (u32::MAX, "gt1024")];
    assert!(classes.into_iter().all(|(ranks, class)| size_class(ranks) == class));
}
