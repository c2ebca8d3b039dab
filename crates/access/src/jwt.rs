//! Tokens that others sign: JSON Web Tokens, as Kubernetes and OpenID providers issue them.
//!
//! Keys come from a JSON Web Key Set on the disk: nothing is fetched. Only signatures of key pairs
//! count (RSA from 2,048 bits, P-256, P-384, Ed25519): a token never chooses a secret, or none.
//!
//! Source: RFC 7515, 7517, 7519.

mod verifier;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Map, Value};

use crate::short::short;

/// Longest token.
pub const TOKEN_BYTES_MAX: usize = 8 << 10;
/// Most keys of an issuer.
const KEYS_MAX: usize = 64;

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum JwtError {
    #[error("the token is not a JSON Web Token; send the three parts that its issuer gave")]
    Malformed,
    #[error("the token's issuer `{}` is not one of this server's; get a token of one that is", short(issuer))]
    Issuer { issuer: String },
    #[error(
        "the token's signature is not one of issuer `{}`; get a new token, or bring the server's keys up to date",
        short(issuer)
    )]
    Signature { issuer: String },
    #[error("the token is not for this server; ask its issuer for audience {}", short(audiences))]
    Audience { audiences: String },
    #[error("the token has expired; get a new one")]
    Expired,
    #[error("the token is not valid yet; wait, or set the clocks right")]
    NotYet,
    #[error(
        "the token's header has `crit`, which demands extensions that this server does not have; ask its issuer for a \
         token without"
    )]
    Critical,
    #[error("claim `{claim}` of the token is missing or not what it should be; ask its issuer for one that has it")]
    Claim { claim: &'static str },
}

/// Why a key set cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum KeysError {
    #[error("it is not a JSON Web Key Set: {}", short(problem))]
    Malformed { problem: String },
    #[error("it holds no key for signatures (RSA, P-256, P-384 or Ed25519)")]
    Empty,
    #[error("it holds {count} keys; at most {KEYS_MAX} are taken")]
    TooMany { count: usize },
}

/// A key, and what may be signed with it.
#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    algorithms: &'static [Algorithm],
    key: DecodingKey,
}

/// Public keys of an issuer.
#[derive(Clone, Debug)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// Reads a key set; keys for other purposes and of other kinds are left out.
    ///
    /// # Errors
    /// It is none, or holds no key that can be used.
    pub fn read(text: &str) -> Result<Self, KeysError> {
        let set: JwkSet =
            serde_json::from_str(text).map_err(|error| KeysError::Malformed { problem: error.to_string() })?;
        if set.keys.len() > KEYS_MAX {
            return Err(KeysError::TooMany { count: set.keys.len() });
        }
        let for_signatures = set
            .keys
            .iter()
            .filter(|key| key.common.public_key_use.as_ref().is_none_or(|meant| *meant == PublicKeyUse::Signature));
        let keys = for_signatures.filter_map(|key| {
            let algorithms = algorithms(&key.algorithm)?;
            let id = key.common.key_id.clone();
            DecodingKey::from_jwk(key).ok().map(|key| Key { id, algorithms, key })
        });
        let keys: Vec<_> = keys.collect();
        if keys.is_empty() { Err(KeysError::Empty) } else { Ok(Self(keys)) }
    }

    /// The keys that may have signed a token with this header.
    fn of(&self, id: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &Key> {
        let fits = move |key: &&Key| {
            key.algorithms.contains(&algorithm) && (id.is_none() || key.id.is_none() || key.id.as_deref() == id)
        };
        self.0.iter().filter(fits)
    }
}

/// What a key of this kind signs with; none for kinds that are not used.
fn algorithms(kind: &AlgorithmParameters) -> Option<&'static [Algorithm]> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match kind {
        AlgorithmParameters::RSA(_) => Some(&[RS256, RS384, RS512, PS256, PS384, PS512]),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Some(&[ES256]),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => Some(&[ES384]),
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Some(&[EdDSA]),
        _ => None,
    }
}

/// An issuer whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// Its `iss`.
    pub issuer: String,
    /// The audiences of which a token must name one.
    pub audiences: Vec<String>,
    /// How far clocks may be apart, in milliseconds.
    pub leeway_ms: u64,
    /// Its keys.
    pub keys: Keys,
}

/// A token that has been verified.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claims {
    /// Whom it speaks of.
    pub(crate) subject: String,
    /// When it ends, in milliseconds since 1970, leeway included.
    pub(crate) expires_ms: u64,
    /// All claims.
    pub(crate) all: Map<String, Value>,
}

/// The issuer that a token names, before anything is verified.
pub(crate) fn issuer_of(token: &str) -> Result<String, JwtError> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(JwtError::Malformed);
    }
    let claims: Map<String, Value> =
        jsonwebtoken::dangerous::insecure_decode_claims(token).map_err(|_| JwtError::Malformed)?;
    text_of(&claims, "iss")
}

fn text_of(claims: &Map<String, Value>, claim: &'static str) -> Result<String, JwtError> {
    let text = claims.get(claim).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or(JwtError::Claim { claim })
}

/// A time of a token, in milliseconds; none if it states none.
fn time_of(claims: &Map<String, Value>, claim: &'static str) -> Result<Option<u64>, JwtError> {
    let Some(value) = claims.get(claim) else { return Ok(None) };
    // A time may have a fraction (RFC 7519, section 2), which is left out.
    let text = value.as_number().ok_or(JwtError::Claim { claim })?.to_string();
    let whole = text.split_once('.').map_or(text.as_str(), |(whole, _)| whole);
    let seconds: u64 = whole.parse().map_err(|_| JwtError::Claim { claim })?;
    seconds.checked_mul(1000).ok_or(JwtError::Claim { claim }).map(Some)
}

impl Issuer {
    /// Verifies a token of this issuer.
    ///
    /// Cost: one signature, or one for each key if the token names none.
    pub(crate) fn verify(&self, token: &str, now_ms: u64) -> Result<Claims, JwtError> {
        verifier::install();
        let header = jsonwebtoken::decode_header(token).map_err(|_| JwtError::Malformed)?;
        // RFC 7515, section 4.1.11: extensions that are not understood refuse the token. None is understood here.
        if header.crit.is_some() {
            return Err(JwtError::Critical);
        }
        let signature = || JwtError::Signature { issuer: self.issuer.clone() };
        let mut validation = Validation::new(header.alg);
        // Times are compared below, with the clock that was passed in, and as numbers or not at all.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.required_spec_claims = ["iss", "aud"].map(str::to_owned).into();
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&self.audiences);
        let mut outcome = Err(signature());
        for key in self.keys.of(header.kid.as_deref(), header.alg) {
            match jsonwebtoken::decode::<Map<String, Value>>(token, &key.key, &validation) {
                Ok(decoded) => {
                    outcome = Ok(decoded.claims);
                    break;
                }
                Err(error) => outcome = Err(self.refusal(&error)),
            }
            if !matches!(outcome, Err(JwtError::Signature { .. })) {
                break;
            }
        }
        let all = outcome?;
        let end = time_of(&all, "exp")?.ok_or(JwtError::Claim { claim: "exp" })?;
        let expires_ms = end.saturating_add(self.leeway_ms);
        if expires_ms <= now_ms {
            return Err(JwtError::Expired);
        }
        if time_of(&all, "nbf")?.is_some_and(|begin| begin > now_ms.saturating_add(self.leeway_ms)) {
            return Err(JwtError::NotYet);
        }
        Ok(Claims { subject: text_of(&all, "sub")?, expires_ms, all })
    }

    fn refusal(&self, error: &jsonwebtoken::errors::Error) -> JwtError {
        use jsonwebtoken::errors::ErrorKind;
        match error.kind() {
            ErrorKind::InvalidAudience => JwtError::Audience { audiences: self.audiences.join(" or ") },
            ErrorKind::InvalidIssuer => JwtError::Claim { claim: "iss" },
            ErrorKind::MissingRequiredClaim(claim) if claim == "aud" => {
                JwtError::Audience { audiences: self.audiences.join(" or ") }
            }
            ErrorKind::InvalidToken | ErrorKind::Base64(_) | ErrorKind::Json(_) | ErrorKind::Utf8(_) => {
                JwtError::Malformed
            }
            _ => JwtError::Signature { issuer: self.issuer.clone() },
        }
    }
}
