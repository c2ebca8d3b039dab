//! Callers, and what each may do.
//!
//! A caller shows something: a client certificate, a bearer token, or the user that its process runs as. The rules of a
//! [`Policy`] make an [`Identity`] of it: for some tenants, some methods. Nothing else is allowed.
//!
//! Pure: files are read, clocks asked and connections held elsewhere; times are passed in, in milliseconds since 1970.
//!
//! | module | what it does |
//! |---|---|
//! | `audit` | lines of a log that cannot be changed unnoticed |
//! | `method` | every method, which standard roles may call it, and what it does |
//! | `role` | named sets of methods |
//! | `short` | texts of others in messages |
//! | `pattern` | texts with a `*` |
//! | `policy` | the file of rules |
//! | `grant` | what one rule gives |
//! | `identity` | a caller, and the judgement of its calls |
//! | `jwt` | tokens that others sign |
//! | `quota` | how much tenants and callers may use |
//! | `token` | tokens of our own, kept as hashes |

pub mod audit;
mod grant;
mod identity;
mod jwt;
mod method;
mod pattern;
mod policy;
mod quota;
mod role;
mod short;
mod token;

pub use grant::{Grant, Tenants};
pub use identity::{Denied, Identity, Source};
pub use jwt::{Issuer, JwtError, Keys, KeysError, TOKEN_BYTES_MAX};
pub use method::{Effect, METHODS, Method, MethodSet, Standard, method};
pub use pattern::Pattern;
pub use policy::{Certificate, IssuerFiles, NameKind, Policy, PolicyError, Refused};
pub use quota::{Limits, Measure, Quota, QuotaError, Quotas};
pub use role::{RoleError, Roles};
pub use token::{NewToken, Purpose, StoredToken, TokenChance, TokenError, Tokens};
