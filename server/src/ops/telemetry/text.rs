//! Fields of log lines for people: `name=value`, in which nothing ends the line or moves the cursor.
//!
//! Names of nodes, files and messages of others are data. A line break in one would begin a line that the server never
//! wrote; other control characters would talk to the terminal.

use std::fmt::{self, Write as _};

use canopy_topology::is_invisible;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// Writes fields with their control characters escaped.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextFields;

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut visitor = TextVisitor { writer, is_first: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct TextVisitor<'w> {
    writer: Writer<'w>,
    is_first: bool,
    result: fmt::Result,
}

impl TextVisitor<'_> {
    fn write(&mut self, field: &Field, value: fmt::Arguments<'_>) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        match field.name() {
            "message" => {}
            name if self.writer.has_ansi_escapes() => write!(self.writer, "\u{1b}[3m{name}\u{1b}[0m=")?,
            name => write!(self.writer, "{name}=")?,
        }
        Escaped(&mut self.writer).write_fmt(value)
    }
}

impl Visit for TextVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.record_debug(field, &format_args!("{value}")),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Fields of events that come from the `log` crate, which the line shows elsewhere.
        if self.result.is_ok() && !field.name().starts_with("log.") {
            self.result = self.write(field, format_args!("{value:?}"));
        }
    }
}

/// Writes `\n` for a line break, the like for all that a terminal does not show, and everything else as it is.
struct Escaped<'a, W>(&'a mut W);

impl<W: fmt::Write> fmt::Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((position, character)) = rest.char_indices().find(|&(_, character)| is_invisible(character)) {
            let (plain, from) = rest.split_at(position);
            self.0.write_str(plain)?;
            write!(self.0, "{}", character.escape_default())?;
            rest = from.get(character.len_utf8()..).unwrap_or_default();
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

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

    fn logged(work: impl FnOnce()) -> String {
        let sink = Sink::default();
        let writer = sink.clone();
        let layer =
            fmt::layer().fmt_fields(TextFields).with_ansi(false).without_time().with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_name_with_a_line_break_stays_within_its_line() {
        let name = "gpu0\r\n2026-01-01T00:00:00Z ERROR forged\u{1b}[2J\u{2028}\u{9b}";
        let text = logged(|| {
            let _span = tracing::info_span!("task", node = name, shown = %name).entered();
            tracing::info!(target: "t", node = name, shown = %name, debugged = ?name, "said {name}");
        });
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        let escaped = r"gpu0\r\n2026-01-01T00:00:00Z ERROR forged\u{1b}[2J\u{2028}\u{9b}";
        assert!(text.contains(&format!("said {escaped} node=\"{escaped}\" shown={escaped} ")), "{text}");
        assert!(!text.contains(|character: char| character.is_control() && character != '\n'), "{text:?}");
    }

    #[test]
    fn fields_of_all_kinds_are_written_as_before() {
        let missing: Option<u64> = None;
        let text = logged(|| tracing::info!(target: "t", count = 3, is = true, ratio = 0.5, missing, "näm € said"));
        assert_eq!(text, " INFO t: näm € said count=3 is=true ratio=0.5\n");
    }
}
