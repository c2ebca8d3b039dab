//! The helper of `canopy tools run` on one of several hosts: starts its ranks and passes on what they and the command say.
//!
//! It ends, and with it all its ranks, when its standard input does: nothing is left behind, however the command ends.

use std::io::{self, BufReader, stdin, stdout};

use tokio::sync::mpsc;

use super::control::{FromHost, ToHost};
use super::ranks::{Ranks, RanksError, Reach};
use crate::exit::Failure;
use crate::lines::{hear, say};

/// The ranks of one host; started by `canopy tools run --hosts`
#[derive(Debug, clap::Args)]
pub(crate) struct HostArgs {}

/// Serves until the command has gone.
pub(crate) fn run(_: &HostArgs) -> Result<(), Failure> {
    let (says, mut told) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut from = BufReader::new(stdin());
        while let Ok(Some(said)) = hear::<ToHost>(&mut from) {
            if says.blocking_send(said).is_err() {
                return;
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::fault(format!("cannot start: {error}")))?;
    let served = runtime.block_on(serve(&mut told));
    served.map_err(|error| Failure::fault(format!("the command has gone: {error}")))
}

async fn serve(told: &mut mpsc::Receiver<ToHost>) -> io::Result<()> {
    say(&mut stdout(), &FromHost::Hello { version: env!("CARGO_PKG_VERSION").to_owned() })?;
    let Some(ToHost::Start { token, ranks }) = told.recv().await else { return Ok(()) };
    let mut processes = Ranks::new();
    let outcome = relay(&mut processes, (&token, &ranks), told).await;
    // What they still do is of no use to the command.
    processes.end(false).await;
    match outcome? {
        None => Ok(()),
        Some(RanksError { message, symptom, is_cause }) => {
            let symptom = symptom.map(|symptom| format!(" ({symptom})")).unwrap_or_default();
            say(&mut stdout(), &FromHost::Failed { message: message + &symptom, is_cause })
        }
    }
}

/// Passes on what is said until the command has gone; returns why ranks cannot go on, if that is how it ends.
async fn relay(
    processes: &mut Ranks,
    (token, ranks): (&str, &[u32]),
    told: &mut mpsc::Receiver<ToHost>,
) -> io::Result<Option<RanksError>> {
    let ports = tokio::select! {
        ports = processes.start(ranks, token, Reach::Hosts) => match ports {
            Ok(ports) => ports,
            Err(error) => return Ok(Some(error)),
        },
        // Nothing is said before they run: the command has gone.
        _ = told.recv() => return Ok(None),
    };
    say(&mut stdout(), &FromHost::Started { ports: ports.into_iter().collect() })?;
    loop {
        tokio::select! {
            heard = processes.next() => match processes.judge(heard).await {
                Ok((rank, said)) => say(&mut stdout(), &FromHost::Said { rank, said })?,
                Err(error) => return Ok(Some(error)),
            },
            told = told.recv() => match told {
                Some(ToHost::Tell(what)) => {
                    if let Err(error) = processes.tell(&what).await {
                        return Ok(Some(error));
                    }
                }
                Some(ToHost::Start { .. }) | None => return Ok(None),
            },
        }
    }
}
