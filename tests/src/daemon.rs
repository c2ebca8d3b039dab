//! A real `canopyd` on the data folder of a test.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::Bench;

/// A server that runs; killed without warning when dropped.
pub struct Daemon {
    child: Child,
    address: String,
}

impl Daemon {
    /// Starts a server on ports that the system chooses, and waits until it serves.
    ///
    /// # Panics
    /// If it ends instead.
    #[track_caller]
    pub fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut command = bench.command("canopyd");
        command.args(["--dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]).args(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("canopyd starts");
        let mut log = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let serving = log.by_ref().find_map(|line| {
            let value: Value = serde_json::from_str(&line).unwrap_or_default();
            said.push(line);
            (value["message"] == "serving canopy.v1").then_some(value)
        });
        let serving = serving.unwrap_or_else(|| panic!("canopyd did not serve: {said:#?}"));
        // Nobody may wait for a full pipe.
        thread::spawn(move || log.for_each(drop));
        let address = serving["tcp"].as_str().expect("the line names its address").to_owned();
        Self { child, address }
    }

    /// Its TCP address, as `--server` takes it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Processor time that it has used, to a hundredth of a second.
    ///
    /// # Panics
    /// If the system does not say.
    #[track_caller]
    pub fn processor_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the process is there");
        // The name in parentheses may hold anything; time of the user and of the system are the 14th and the 15th field.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        Duration::from_millis(
            10 * fields.map(|field| field.parse::<u64>().expect("hundredths of a second")).sum::<u64>(),
        )
    }

    /// Ends it in order, with everything written that it has to write.
    ///
    /// # Panics
    /// If it does not end well.
    #[track_caller]
    pub fn stop(mut self) {
        let told = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.child.id())]).status();
        let told = told.expect("a shell runs");
        let ended = self.child.wait().expect("the child can be waited for");
        assert!(told.success() && ended.success(), "canopyd ended with {ended}");
    }

    /// Ends it as a loss of power would: no handler runs.
    pub fn kill(&mut self) {
        // It may have ended by itself, which the caller will notice.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}
