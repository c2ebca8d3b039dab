//! The terminal: what is drawn on it, and the keys that are pressed.

use std::io::{self, IsTerminal as _, Stdout};
use std::thread;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};
use tokio::sync::mpsc;

use crate::exit::Failure;

/// Lines of a page.
const PAGE: isize = 10;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Pause,
    Jobs,
    Faults,
    /// So many lines down.
    Scroll(isize),
    /// The terminal has another size.
    Redraw,
}

/// The whole terminal, which is as it was once this is dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    keys: mpsc::UnboundedReceiver<io::Result<Key>>,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn open() -> Result<Self, Failure> {
        if !io::stdout().is_terminal() {
            return Err(Failure::input("standard output is not a terminal").help("add `--once` for one look as text"));
        }
        enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen))
            .map_err(|error| refused(&error))?;
        let opened = Terminal::new(CrosstermBackend::new(io::stdout())).map_err(|error| refused(&error));
        let terminal = opened.inspect_err(|_| restore())?;
        let (sender, keys) = mpsc::unbounded_channel();
        // It ends with the process: reading keys cannot be interrupted.
        thread::Builder::new().name("canopy-keys".to_owned()).spawn(move || read_keys(&sender)).map_err(|error| {
            restore();
            refused(&error)
        })?;
        Ok(Self { terminal, keys })
    }

    /// Draws one picture.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        self.terminal.draw(picture).map(|_| ()).map_err(|error| refused(&error))
    }

    /// The next key that means something.
    pub(super) async fn key(&mut self) -> Result<Key, Failure> {
        match self.keys.recv().await {
            Some(key) => key.map_err(|error| refused(&error)),
            None => std::future::pending().await,
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back.
fn restore() {
    // Where that fails there is no terminal any more.
    let _gone = execute!(io::stdout(), LeaveAlternateScreen).and_then(|()| disable_raw_mode());
}

fn refused(error: &io::Error) -> Failure {
    Failure::fault(format!("the terminal cannot be used: {error}")).help("add `--once` for one look as text")
}

fn read_keys(sender: &mpsc::UnboundedSender<io::Result<Key>>) {
    loop {
        let sent = match event::read() {
            Ok(event) => meaning(&event).map_or(Ok(()), |key| sender.send(Ok(key))),
            Err(error) => {
                let _gone = sender.send(Err(error));
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// What an event means; nothing for most.
fn meaning(event: &Event) -> Option<Key> {
    match event {
        Event::Resize(..) => Some(Key::Redraw),
        Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) => match code {
            KeyCode::Char('c' | 'd') if modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
            KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
            KeyCode::Char('p' | ' ') => Some(Key::Pause),
            KeyCode::Char('j') => Some(Key::Jobs),
            KeyCode::Char('f') => Some(Key::Faults),
            KeyCode::Down => Some(Key::Scroll(1)),
            KeyCode::Up => Some(Key::Scroll(-1)),
            KeyCode::PageDown => Some(Key::Scroll(PAGE)),
            KeyCode::PageUp => Some(Key::Scroll(-PAGE)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_meanings() {
        let press = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        let plain = KeyModifiers::NONE;
        assert_eq!(press(KeyCode::Char('q'), plain), Some(Key::Quit));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(press(KeyCode::Char('c'), plain), None);
        assert_eq!(press(KeyCode::PageUp, plain), Some(Key::Scroll(-10)));
        assert_eq!(meaning(&Event::Resize(100, 40)), Some(Key::Redraw));
        assert_eq!(meaning(&Event::FocusLost), None);
    }
}
