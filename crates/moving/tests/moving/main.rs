//! Bounds against the whole linear program, what every plan and checker must do, and published schedules.

mod chance;
mod optimum;
mod properties;
mod published;
