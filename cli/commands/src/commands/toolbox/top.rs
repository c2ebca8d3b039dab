//! `canopy tools top`: what a server does, again and again, on a terminal.

mod metrics;
mod screen;
mod snapshot;
mod terminal;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::{mpsc, watch};

use self::screen::{List, View, paint};
use self::snapshot::{Moments, Snapshot};
use self::terminal::{Key, Screen};
use crate::args;
use crate::clock::Deadline;
use crate::connection::{ServerArgs, Session};
use crate::exit::Failure;
use crate::stdout::print;

/// Longest time to wait for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Watch the queue, answers, cache, faults and jobs of a server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Keys: q quits, p pauses, j lists jobs, f lists faults, arrows and PageUp/PageDown scroll. Rates and times are those since the last
look. Works from 80 columns and 24 lines on.

Examples:
  canopy tools top
  canopy tools top --server unix:/run/canopy/canopyd.sock --interval 5s
  canopy tools top --once    # one look as text, after an interval")]
pub(crate) struct TopArgs {
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    interval: Duration,
    /// Print one look as text and end
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Watches until it is told to end.
pub(crate) async fn run(args: TopArgs) -> Result<(), Failure> {
    if args.interval < Duration::from_millis(100) {
        return Err(Failure::input("--interval is too short").help("use 100ms or more"));
    }
    args.server.require_server().await?;
    let mut session = Session::open(&args.server).await?;
    let ended = watched(&args, &mut session).await;
    session.close().await;
    ended
}

async fn watched(args: &TopArgs, session: &mut Session) -> Result<(), Failure> {
    let mut moments = Moments::default().next(look(session).await?);
    let view = View { server: args.server.in_words(), ..View::default() };
    if args.once {
        tokio::time::sleep(args.interval).await;
        moments = moments.next(look(session).await?);
        return print(&as_text(&moments, &view));
    }
    let (paused, is_paused) = watch::channel(false);
    let (looked, looks) = mpsc::channel(1);
    // Beside each other: keys do not wait for a server that does not answer.
    tokio::select! {
        ended = show(moments, view, looks, &paused) => ended,
        () = look_on(args.interval, session, &looked, is_paused) => Ok(()),
    }
}

/// Draws what is seen until a key ends it.
async fn show(
    mut moments: Moments,
    mut view: View,
    mut looks: mpsc::Receiver<Result<Snapshot, Failure>>,
    paused: &watch::Sender<bool>,
) -> Result<(), Failure> {
    let mut screen = Screen::open()?;
    loop {
        screen.draw(|frame| screen::draw(frame, &moments, &view))?;
        tokio::select! {
            key = screen.key() => {
                if press(&mut view, key?) {
                    return Ok(());
                }
                paused.send_replace(view.is_paused);
            }
            Some(looked) = looks.recv() => match looked {
                Ok(now) => (moments, view.problem) = (moments.next(now), None),
                Err(failure) => view.problem = Some(failure.sentence()),
            },
        }
    }
}

/// Looks again and again, except while it is paused.
async fn look_on(
    interval: Duration,
    session: &mut Session,
    looked: &mpsc::Sender<Result<Snapshot, Failure>>,
    mut is_paused: watch::Receiver<bool>,
) {
    loop {
        tokio::time::sleep(interval).await;
        // Without a sender it is over, and this ends with it.
        let _goes_on = is_paused.wait_for(|is_paused| !is_paused).await.map(|_| ());
        if looked.send(look(session).await).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn look(session: &mut Session) -> Result<Snapshot, Failure> {
    let end = Deadline::after(Some(PATIENCE));
    let looked = session.ask(end, async |connection, left| Ok(Snapshot::of(connection.shared(), left).await?)).await;
    looked.map_err(|error| error.told(|error| error))
}

/// Does what a key says; true: it is the end.
fn press(view: &mut View, key: Key) -> bool {
    match key {
        Key::Quit => return true,
        Key::Pause => view.is_paused = !view.is_paused,
        Key::Jobs => (view.list, view.scrolled) = (List::Jobs, 0),
        Key::Faults => (view.list, view.scrolled) = (List::Faults, 0),
        Key::Scroll(lines) => view.scrolled = view.scrolled.saturating_add_signed(lines),
        Key::Redraw => {}
    }
    false
}

/// One look on 80 columns and 24 lines.
fn as_text(moments: &Moments, view: &View) -> String {
    let area = Rect::new(0, 0, 80, 24);
    let mut buffer = Buffer::empty(area);
    paint(&mut buffer, area, moments, view);
    let line = |y| -> String {
        let line: String = (0..area.width).map(|x| buffer[(x, y)].symbol()).collect();
        line.trim_end().to_owned()
    };
    // The keys are of no use here.
    (0..area.height - 1).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_what_is_shown() {
        let mut view = View::default();
        assert!(!press(&mut view, Key::Faults) && view.list == List::Faults);
        assert!(!press(&mut view, Key::Scroll(5)) && view.scrolled == 5);
        assert!(!press(&mut view, Key::Scroll(-9)) && view.scrolled == 0);
        assert!(!press(&mut view, Key::Pause) && view.is_paused);
        assert!(!press(&mut view, Key::Jobs) && view.list == List::Jobs);
        assert!(press(&mut view, Key::Quit));
    }
}
