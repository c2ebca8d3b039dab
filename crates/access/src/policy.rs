//! The file of rules: roles, issuers of tokens, and grants to callers.

use std::collections::BTreeMap;

use canopy_planner::NotATenant;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::grant::{Grant, Tenants};
use crate::identity::{Identity, Source};
use crate::jwt::{Issuer, JwtError, Keys, KeysError, issuer_of};
use crate::pattern::Pattern;
use crate::quota::{QuotaError, Quotas, QuotasText};
use crate::role::{RoleError, RoleText, Roles};
use crate::short::short;
use crate::token::{TokenError, Tokens};

/// Most rules.
const GRANTS_MAX: usize = 10_000;
/// Most that clocks may be apart, in seconds.
const LEEWAY_S_MAX: u64 = 600;
/// What they may be apart where nothing is stated.
const LEEWAY_S_DEFAULT: u64 = 60;

/// Why a file of rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PolicyError {
    #[error("line {line}: {}", short(problem))]
    Malformed { line: usize, problem: String },
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error(transparent)]
    Quota(#[from] QuotaError),
    #[error("grant {number}: {source}")]
    GrantRole { number: usize, source: RoleError },
    #[error("grant {number}: {source}")]
    GrantTenant { number: usize, source: NotATenant },
    #[error(
        "grant {number} must name one of `certificate`, `user`, `group`, and `issuer` with `subject`; it names {named}"
    )]
    GrantSubject { number: usize, named: String },
    #[error(
        "grant {number}: `certificate` `{}` states no kind of name before its `*`; write dns:, email:, cn: or the \
         scheme of a URI first, or `*` alone for every certificate",
        short(pattern)
    )]
    GrantKind { number: usize, pattern: String },
    #[error("grant {number}: `issuer` `{}` is not one of the `[issuers]`; there are {}", short(issuer), short(known))]
    GrantIssuer { number: usize, issuer: String, known: String },
    #[error("there are {count} grants; at most {GRANTS_MAX} are taken")]
    TooMany { count: usize },
    #[error("issuer `{}`: {}", short(issuer), short(problem))]
    Issuer { issuer: String, problem: String },
    #[error("`keys` of issuer `{}`, {}: {source}", short(issuer), short(path))]
    Keys { issuer: String, path: String, source: KeysError },
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    roles: BTreeMap<String, RoleText>,
    #[serde(default)]
    issuers: BTreeMap<String, IssuerText>,
    #[serde(default)]
    grant: Vec<GrantText>,
    #[serde(default)]
    quotas: QuotasText,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerText {
    /// The `iss` of its tokens.
    issuer: Option<String>,
    /// Its discovery document, from which `issuer` is taken.
    discovery: Option<String>,
    /// Its JSON Web Key Set.
    keys: String,
    audiences: Vec<String>,
    leeway_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantText {
    certificate: Option<Pattern>,
    user: Option<u32>,
    group: Option<u32>,
    issuer: Option<String>,
    subject: Option<Pattern>,
    #[serde(default)]
    claims: BTreeMap<String, Pattern>,
    roles: Vec<String>,
    #[serde(default)]
    tenants: Vec<String>,
}

/// Whom a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Certificate(Pattern),
    User(u32),
    Group(u32),
    Jwt { issuer: String, subject: Pattern, claims: BTreeMap<String, Pattern> },
}

/// A file that a policy names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerFiles {
    /// The issuer, for messages.
    pub issuer: String,
    /// The path, as it stands in the file of rules.
    pub path: String,
}

/// Kind of a name in a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A URI, such as a SPIFFE identity.
    Uri,
    /// A name of the domain name system.
    Dns,
    /// An address of electronic mail.
    Email,
    /// A common name of the subject.
    CommonName,
}

impl NameKind {
    /// Prefix of such a name in rules and logs; URIs have their own scheme instead.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Uri => "",
            Self::Dns => "dns:",
            Self::Email => "email:",
            Self::CommonName => "cn:",
        }
    }
}

/// Schemes that a URI in a certificate may not have: its text would read as a name of another kind.
const RESERVED_SCHEMES: [&str; 5] = ["cn", "dns", "email", "uid", "uri"];

/// The names in a client certificate, each under its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    names: Vec<String>,
    not_after_ms: u64,
}

impl Certificate {
    /// A certificate with these names, the first of them the caller's name in logs, valid until this time in
    /// milliseconds since 1970.
    ///
    /// Rules and logs know names as text: URIs as they are, `dns:NAME`, `email:NAME`, `cn:NAME`. A URI whose scheme is
    /// that of another kind becomes `uri:URI`, so that no text of one kind passes for another.
    pub fn new<'a>(names: impl IntoIterator<Item = (NameKind, &'a str)>, not_after_ms: u64) -> Self {
        let written = |(kind, text): (NameKind, &str)| {
            let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
            let is_reserved = RESERVED_SCHEMES.iter().any(|reserved| scheme.eq_ignore_ascii_case(reserved));
            match kind {
                NameKind::Uri if is_reserved || scheme.is_empty() => format!("uri:{text}"),
                kind => format!("{}{text}", kind.prefix()),
            }
        };
        Self { names: names.into_iter().map(written).collect(), not_after_ms }
    }

    /// Names as rules know them.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// End of its validity, in milliseconds since 1970.
    pub const fn not_after_ms(&self) -> u64 {
        self.not_after_ms
    }
}

/// Why a caller is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum Refused {
    #[error(transparent)]
    Jwt(#[from] JwtError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("no rule of this server is about {who}; ask an administrator to grant it a role")]
    Unknown { who: String },
}

/// The rules of a server.
#[derive(Clone, Debug)]
pub struct Policy {
    roles: Roles,
    issuers: BTreeMap<String, Issuer>,
    grants: Vec<(Who, Grant)>,
    quotas: Quotas,
}

impl Policy {
    /// Reads a file of rules (TOML); `read` reads the files that it names.
    ///
    /// # Errors
    /// It is none, names what does not exist, or a file that it names cannot be used.
    pub fn read(text: &str, mut read: impl FnMut(&IssuerFiles) -> Result<String, String>) -> Result<Self, PolicyError> {
        let file: File = toml::from_str(text).map_err(|error| malformed(text, &error))?;
        if file.grant.len() > GRANTS_MAX {
            return Err(PolicyError::TooMany { count: file.grant.len() });
        }
        let roles = Roles::with(&file.roles)?;
        let mut issuers = BTreeMap::new();
        for (name, text) in file.issuers {
            issuers.insert(name.clone(), issuer(&name, text, &mut read)?);
        }
        let grants = file.grant.into_iter().enumerate();
        let grants = grants.map(|(at, text)| rule(at + 1, text, &roles, &issuers)).collect::<Result<_, _>>()?;
        let quotas = Quotas::read(&file.quotas)?;
        Ok(Self { roles, issuers, grants, quotas })
    }

    /// How much tenants and callers may use.
    pub const fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// The roles that there are.
    pub const fn roles(&self) -> &Roles {
        &self.roles
    }

    /// The caller that shows a client certificate, whose chain was verified.
    ///
    /// # Errors
    /// No rule is about it.
    pub fn certificate(&self, certificate: &Certificate) -> Result<Identity, Refused> {
        let name = certificate.names.first().cloned().unwrap_or_else(|| "a certificate without a name".to_owned());
        let is_meant = |who: &Who| match who {
            Who::Certificate(pattern) => certificate.names.iter().any(|name| pattern.matches(name)),
            _ => false,
        };
        self.identity(name, Source::Certificate, Some(certificate.not_after_ms), is_meant)
    }

    /// The caller whose process runs as this user.
    ///
    /// # Errors
    /// No rule is about it.
    pub fn user(&self, user: u32, group: u32) -> Result<Identity, Refused> {
        let is_meant = |who: &Who| *who == Who::User(user) || *who == Who::Group(group);
        self.identity(format!("uid:{user}"), Source::User, None, is_meant)
    }

    /// The caller that shows this bearer token: one of `tokens`, or one of an issuer.
    ///
    /// # Errors
    /// It is not valid, or no rule is about it.
    pub fn bearer(&self, token: &str, tokens: &Tokens, now_ms: u64) -> Result<Identity, Refused> {
        // Without issuers, no token is theirs.
        if Tokens::is_one(token) || self.issuers.is_empty() {
            return Ok(tokens.identify(token, &self.roles, now_ms)?);
        }
        let named = issuer_of(token)?;
        let mut of_issuer = self.issuers.iter().filter(|(_, issuer)| issuer.issuer == named);
        let Some((name, issuer)) = of_issuer.next() else {
            return Err(JwtError::Issuer { issuer: named.chars().take(200).collect() }.into());
        };
        let claims = issuer.verify(token, now_ms)?;
        let is_meant = |who: &Who| match who {
            Who::Jwt { issuer, subject, claims: wanted } => {
                issuer == name
                    && subject.matches(&claims.subject)
                    && wanted.iter().all(|(path, pattern)| has(&claims.all, path, pattern))
            }
            _ => false,
        };
        self.identity(claims.subject.clone(), Source::Jwt, Some(claims.expires_ms), is_meant)
    }

    fn identity(
        &self,
        name: String,
        source: Source,
        expires_ms: Option<u64>,
        is_meant: impl Fn(&Who) -> bool,
    ) -> Result<Identity, Refused> {
        let grants: Vec<_> =
            self.grants.iter().filter(|(who, _)| is_meant(who)).map(|(_, grant)| grant.clone()).collect();
        if grants.is_empty() {
            return Err(Refused::Unknown { who: format!("{source} {}", name.chars().take(200).collect::<String>()) });
        }
        Ok(Identity { name, source, grants, expires_ms })
    }
}

fn malformed(text: &str, error: &toml::de::Error) -> PolicyError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    PolicyError::Malformed { line, problem: error.message().split('\n').collect::<Vec<_>>().join(", ") }
}

fn issuer(
    name: &str,
    text: IssuerText,
    read: &mut impl FnMut(&IssuerFiles) -> Result<String, String>,
) -> Result<Issuer, PolicyError> {
    let refused = |problem: String| PolicyError::Issuer { issuer: name.to_owned(), problem };
    let mut file = |path: &str| {
        read(&IssuerFiles { issuer: name.to_owned(), path: path.to_owned() })
            .map_err(|problem| refused(format!("{path}: {problem}")))
    };
    let issuer = match (text.issuer, text.discovery) {
        (Some(issuer), None) => issuer,
        (None, Some(path)) => {
            let document: Map<String, Value> = serde_json::from_str(&file(&path)?)
                .map_err(|error| refused(format!("{path} is not a discovery document: {error}")))?;
            let issuer = document.get("issuer").and_then(Value::as_str).map(str::to_owned);
            issuer.ok_or_else(|| refused(format!("{path} is not a discovery document: it has no `issuer`")))?
        }
        _ => return Err(refused("state `issuer`, or `discovery`, and not both".to_owned())),
    };
    if text.audiences.is_empty() {
        return Err(refused(
            "`audiences` is empty: tokens for other services would be taken; name this server's".into(),
        ));
    }
    let leeway_s = text.leeway_seconds.unwrap_or(LEEWAY_S_DEFAULT);
    if leeway_s > LEEWAY_S_MAX {
        return Err(refused(format!(
            "`leeway_seconds` {leeway_s} exceeds {LEEWAY_S_MAX}; set the clocks right instead"
        )));
    }
    let keys = Keys::read(&file(&text.keys)?).map_err(|source| PolicyError::Keys {
        issuer: name.to_owned(),
        path: text.keys.clone(),
        source,
    })?;
    Ok(Issuer { issuer, audiences: text.audiences, leeway_ms: leeway_s * 1000, keys })
}

fn rule(
    number: usize,
    text: GrantText,
    roles: &Roles,
    issuers: &BTreeMap<String, Issuer>,
) -> Result<(Who, Grant), PolicyError> {
    let methods = roles.methods(&text.roles).map_err(|source| PolicyError::GrantRole { number, source })?;
    let tenants = Tenants::read(&text.tenants).map_err(|source| PolicyError::GrantTenant { number, source })?;
    let who = match text {
        GrantText {
            certificate: Some(pattern), user: None, group: None, issuer: None, subject: None, claims, ..
        } if claims.is_empty() => {
            if !pattern.is_any() && !pattern.fixed_start().contains(':') {
                return Err(PolicyError::GrantKind { number, pattern: pattern.to_string() });
            }
            Who::Certificate(pattern)
        }
        GrantText { certificate: None, user: Some(user), group: None, issuer: None, subject: None, claims, .. }
            if claims.is_empty() =>
        {
            Who::User(user)
        }
        GrantText {
            certificate: None, user: None, group: Some(group), issuer: None, subject: None, claims, ..
        } if claims.is_empty() => Who::Group(group),
        GrantText {
            certificate: None, user: None, group: None, issuer: Some(issuer), subject: Some(subject), ..
        } => {
            if !issuers.contains_key(&issuer) {
                let known = issuers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(PolicyError::GrantIssuer { number, issuer, known });
            }
            Who::Jwt { issuer, subject, claims: text.claims }
        }
        other => return Err(PolicyError::GrantSubject { number, named: named(&other) }),
    };
    Ok((who, Grant { methods, tenants }))
}

/// The keys of a rule that say whom it is about.
fn named(text: &GrantText) -> String {
    let keys = [
        ("certificate", text.certificate.is_some()),
        ("user", text.user.is_some()),
        ("group", text.group.is_some()),
        ("issuer", text.issuer.is_some()),
        ("subject", text.subject.is_some()),
        ("claims", !text.claims.is_empty()),
    ];
    let named: Vec<_> = keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect();
    if named.is_empty() { "none of them".to_owned() } else { named.join(", ") }
}

/// Whether a claim, or one of the texts in it if it is a list, is as wanted. A path leads into objects: `a.b`.
fn has(claims: &Map<String, Value>, path: &str, pattern: &Pattern) -> bool {
    // A claim's own name may hold dots, as those that are URLs do.
    let value = claims.get(path).or_else(|| {
        let mut parts = path.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    });
    match value {
        Some(Value::String(text)) => pattern.matches(text),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(|text| pattern.matches(text)),
        Some(Value::Bool(flag)) => pattern.matches(if *flag { "true" } else { "false" }),
        _ => false,
    }
}
