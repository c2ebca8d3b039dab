//! Times by hand, closed forms of well-known algorithms, limits of small and large messages, and properties.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "simulate/activity.rs"]
mod activity;
#[path = "simulate/bandwidth.rs"]
mod bandwidth;
#[path = "simulate/by_class.rs"]
mod by_class;
#[path = "simulate/closed.rs"]
mod closed;
#[path = "simulate/costs.rs"]
mod costs;
#[path = "simulate/elsewhere.rs"]
mod elsewhere;
#[path = "simulate/hand.rs"]
mod hand;
#[path = "simulate/labels.rs"]
mod labels;
#[path = "simulate/limits.rs"]
mod limits;
#[path = "simulate/messages.rs"]
mod messages;
#[path = "simulate/multiport.rs"]
mod multiport;
#[path = "simulate/networks.rs"]
mod networks;
#[path = "simulate/properties.rs"]
mod properties;
#[path = "simulate/refused.rs"]
mod refused;
#[path = "simulate/together.rs"]
mod together;
