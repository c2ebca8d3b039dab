//! A log line as one flat JSON object: time, level, target, the fields of the event, and the call it belongs to.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::call::{CallContext, Caller};

/// Writes JSON lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let target = fields.log_target.as_deref().unwrap_or(event.metadata().target());
        write!(writer, "{{\"timestamp\":{},\"level\":\"{}\"", quoted(&time), event.metadata().level())?;
        write!(writer, "{},\"target\":{}", fields.text, quoted(target))?;
        if let Some(call) = CallContext::current() {
            write!(writer, ",\"trace_id\":\"{}\"", call.trace_id())?;
            if let Some(Caller { identity, tenant }) = call.caller() {
                write!(writer, ",\"identity\":{},\"tenant\":{}", quoted(identity), quoted(tenant))?;
            }
            if let Some(request) = call.request().filter(|_| !fields.has_request) {
                write!(writer, ",\"request\":\"{request}\"")?;
            }
        }
        if let Some(span) = context.lookup_current() {
            write!(writer, ",\"span\":{}", quoted(span.name()))?;
        }
        writeln!(writer, "}}")
    }
}

/// The line that says that others were dropped.
pub(super) fn dropped(count: u64) -> String {
    let mut time = String::new();
    // A line without its time says what matters all the same.
    let _formatted = SystemTime.format_time(&mut Writer::new(&mut time));
    let message = "log lines were dropped because their reader was too slow";
    format!(
        "{{\"timestamp\":{},\"level\":\"WARN\",\"message\":{},\"dropped\":{count},\"target\":{}}}\n",
        quoted(&time),
        quoted(message),
        quoted(module_path!()),
    )
}

/// The fields of an event, each with a comma before it.
#[derive(Default)]
struct Fields {
    text: String,
    has_request: bool,
    /// Where an event of the `log` crate comes from.
    log_target: Option<String>,
}

impl Fields {
    fn push(&mut self, field: &Field, value: &str) {
        let name = field.name();
        if name.starts_with("log.") {
            return;
        }
        self.has_request |= name == "request";
        self.text.push(',');
        self.text += &quoted(name);
        self.text.push(':');
        self.text += value;
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinities.
        let text = if value.is_finite() { value.to_string() } else { "null".to_owned() };
        self.push(field, &text);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, &value.to_string());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, &value.to_string());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, &value.to_string());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.log_target = Some(value.to_owned());
        }
        self.push(field, &quoted(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, &quoted(&format!("{value:?}")));
    }
}

/// A text as JSON writes it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tonic::codegen::http::HeaderMap;
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::call::LineLimit;
    use crate::metrics::Metrics;
    use canopy_planner::RequestKey;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged meanwhile, without times.
    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let sink = Sink::default();
        let writer = sink.clone();
        let layer = fmt::layer().event_format(JsonLines).with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let bytes = sink.0.lock().unwrap().clone();
        let lines = String::from_utf8(bytes).unwrap();
        let without_time = |line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            assert!(line.as_object_mut().unwrap().remove("timestamp").is_some());
            line
        };
        lines.lines().map(without_time).collect()
    }

    #[test]
    fn a_line_is_one_flat_object_whatever_is_in_it() {
        let lines = logged(|| {
            let missing: Option<u64> = None;
            tracing::info!(target: "t", text = "a \"b\"\n{c}", count = 3, less = -1, ratio = 0.5, bad = f64::NAN, missing, "said");
        });
        let expected = json!({"level": "INFO", "target": "t", "message": "said", "text": "a \"b\"\n{c}", "count": 3,
            "less": -1, "ratio": 0.5, "bad": null});
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn the_line_about_dropped_lines_is_like_all_others() {
        let line = dropped(7);
        assert!(line.ends_with('\n'));
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["level"], &line["dropped"]), (&json!("WARN"), &json!(7)));
        assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    }

    #[test]
    fn lines_of_a_call_name_its_trace_and_its_request_once() {
        let mut headers = HeaderMap::new();
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        headers.insert("traceparent", format!("00-{id}-00f067aa0ba902b7-01").parse().unwrap());
        let call = CallContext::begin(Metrics::off(), LineLimit::default(), &headers, &tracing::Span::none());
        let lines = logged(|| {
            tracing::info!("outside");
            let _in_call = call.enter();
            tracing::info!("early");
            call.asks(RequestKey::from_bytes([7; 32]));
            tracing::info!("late");
            tracing::info!(request = "own", "own");
        });
        let request = "07".repeat(32);
        let expected = [(None, None), (Some(id), None), (Some(id), Some(&*request)), (Some(id), Some("own"))];
        let found: Vec<_> = lines.iter().map(|line| (line["trace_id"].as_str(), line["request"].as_str())).collect();
        assert_eq!(found, expected);
    }
}
