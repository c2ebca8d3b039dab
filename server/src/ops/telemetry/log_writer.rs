//! Where log lines leave the process, without ever holding up who writes them.
//!
//! Lines wait in a bounded buffer for a thread that writes them. Who reads the log may stop reading: then the buffer
//! fills up, further lines are dropped, and the next line that gets through is preceded by one that says how many.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;

use crate::clock;

/// Most bytes of lines that wait. A burst of thousands of lines fits.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Takes lines; clones lead to the same thread.
#[derive(Clone, Debug, Default)]
pub(super) struct LogWriter(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something waits, or nothing does any more.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    dropped: u64,
    /// Since the start.
    dropped_total: u64,
    /// The thread holds lines that it has not written.
    is_writing: bool,
}

impl LogWriter {
    /// Starts the thread that writes to `sink`. `notice` makes a line of the number of lines that were dropped.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start(sink: impl Write + Send + 'static, notice: fn(u64) -> String) -> io::Result<Self> {
        let writer = Self::default();
        let shared = Arc::clone(&writer.0);
        thread::Builder::new().name("canopy-log".to_owned()).spawn(move || shared.write_to(sink, notice))?;
        Ok(writer)
    }

    /// Lines that were dropped since the start.
    pub(super) fn dropped_count(&self) -> u64 {
        self.0.state.lock().dropped_total
    }

    /// Waits until every line has left, but no longer than `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let mut state = self.0.state.lock();
        let has_more = |state: &State| state.is_writing || !state.waiting.is_empty() || state.dropped > 0;
        // What has not left by then has no reader.
        let until = clock::now() + patience;
        while has_more(&state) && !self.0.changed.wait_until(&mut state, until).timed_out() {}
    }
}

impl Shared {
    /// Writes what comes, to the end of the process.
    fn write_to(&self, mut sink: impl Write, notice: fn(u64) -> String) {
        let mut state = self.state.lock();
        loop {
            if state.waiting.is_empty() && state.dropped == 0 {
                self.changed.wait(&mut state);
                continue;
            }
            let (lines, dropped) = (std::mem::take(&mut state.waiting), std::mem::take(&mut state.dropped));
            state.is_writing = true;
            drop(state);
            // A log that cannot be written is nothing that a log could tell.
            let _written = sink.write_all(&lines);
            if dropped > 0 {
                let _written = sink.write_all(notice(dropped).as_bytes());
            }
            let _flushed = sink.flush();
            state = self.state.lock();
            state.is_writing = false;
            self.changed.notify_all();
        }
    }
}

/// Each write is one line: the formatters of `tracing-subscriber` write a line at once.
impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.0.state.lock();
        if state.waiting.len().saturating_add(line.len()) > WAITING_BYTES_MAX {
            state.dropped += 1;
            state.dropped_total += 1;
        } else {
            state.waiting.extend_from_slice(line);
        }
        drop(state);
        self.0.changed.notify_all();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn notice(count: u64) -> String {
        format!("{count} dropped\n")
    }

    /// A sink that takes nothing until it is let go.
    struct Stuck {
        asked: mpsc::Sender<()>,
        gate: mpsc::Receiver<()>,
        taken: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Errors mean that the test is over, or does not care, or that the gate stays open.
            let _asked = self.asked.send(());
            let _open = self.gate.recv();
            self.taken.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_logs_is_not_held_up_by_who_reads_and_lost_lines_are_counted() {
        let (open, gate) = mpsc::channel();
        let (taken, lines) = mpsc::channel();
        let (asked, is_asked) = mpsc::channel();
        let mut writer = LogWriter::start(Stuck { asked, gate, taken }, notice).unwrap();
        writer.write_all(b"first\n").unwrap();
        // The first line is on its way alone, and all that follows waits behind it.
        is_asked.recv().unwrap();
        let long = vec![b'x'; 1 << 20];
        for _ in 0..8 {
            writer.write_all(&long).unwrap();
        }
        writer.flush(Duration::from_millis(1));
        drop(open);
        writer.flush(Duration::from_secs(60));
        let text: Vec<u8> = lines.try_iter().flatten().collect();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("first\n"), "{}", text.len());
        let kept = text.bytes().filter(|&byte| byte == b'x').count() >> 20;
        assert!((3..=4).contains(&kept), "{kept}");
        assert!(text.ends_with(&format!("{} dropped\n", 8 - kept)), "{}", &text[text.len() - 20..]);
    }

    #[test]
    fn lines_leave_whole_and_in_order() {
        let (taken, lines) = mpsc::channel();
        let (open, gate) = mpsc::channel();
        drop(open);
        let (asked, _) = mpsc::channel();
        let mut writer = LogWriter::start(Stuck { asked, gate, taken }, notice).unwrap();
        let expected: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        for line in expected.split_inclusive('\n') {
            writer.write_all(line.as_bytes()).unwrap();
        }
        writer.flush(Duration::from_secs(60));
        assert_eq!(String::from_utf8(lines.try_iter().flatten().collect()).unwrap(), expected);
    }
}
