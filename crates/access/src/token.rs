//! Tokens of our own: random, kept as salted hashes, with an end.
//!
//! A token reads `canopy_ID_SECRET`. The secret has 256 random bits and cannot be guessed, so one pass of a keyed hash
//! suffices, and the file of hashes gives nobody a token.

use std::collections::BTreeMap;
use std::fmt;

use canopy_planner::NotATenant;
use canopy_topology::is_invisible;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::grant::{Grant, Tenants};
use crate::identity::{Identity, Source};
use crate::role::{RoleError, Roles};
use crate::short::short;

/// What every token of ours begins with.
const PREFIX: &str = "canopy_";
/// Bytes of an identifier, of a secret and of a salt.
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;
/// Most tokens of a server, those that have ended included.
const TOKENS_MAX: usize = 10_000;
/// Longest name of a token.
const NAME_CHARS_MAX: usize = 100;

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StoredToken {
    /// Tells tokens apart; a part of the token itself.
    pub id: String,
    /// Whose it is, for people and logs.
    pub name: String,
    /// Key of the hash, in hexadecimal.
    salt: String,
    /// Hash of the secret, in hexadecimal.
    hash: String,
    /// What it may do.
    pub roles: Vec<String>,
    /// For whom; `*` for all, nothing for what is shared.
    pub tenants: Vec<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it ends.
    pub expires_ms: u64,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<u64>,
}

/// Why a token is refused, or not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TokenError {
    #[error("the token is not one of this server's; ask an administrator for one (`canopy server tokens create`)")]
    Unknown,
    #[error("token `{}` has expired; ask an administrator for a new one (`canopy server tokens create`)", short(name))]
    Expired { name: String },
    #[error("token `{}` was revoked; ask an administrator for a new one (`canopy server tokens create`)", short(name))]
    Revoked { name: String },
    #[error("the file of tokens cannot be read: {}", short(problem))]
    Malformed { problem: String },
    #[error("there are {TOKENS_MAX} tokens already; take those that have ended out of the file")]
    TooMany,
    #[error("`{}` cannot be the name of a token; use 1 to {NAME_CHARS_MAX} characters without controls", short(name))]
    Name { name: String },
    #[error("no valid token has the name or identifier `{}`; `canopy server tokens list` shows all", short(name))]
    NotFound { name: String },
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error(transparent)]
    Tenant(#[from] NotATenant),
}

/// A token that was just made; this is the only time that it can be seen.
pub struct NewToken {
    /// What its owner shows.
    pub text: Zeroizing<String>,
    /// What is kept of it.
    pub stored: StoredToken,
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").field("stored", &self.stored).finish_non_exhaustive()
    }
}

/// What a new token is for.
#[derive(Clone, Debug)]
pub struct Purpose<'a> {
    /// Whose it is.
    pub name: &'a str,
    /// What it may do.
    pub roles: &'a [String],
    /// For whom.
    pub tenants: &'a [String],
    /// When it ends, in milliseconds since 1970.
    pub expires_ms: u64,
}

/// Chance for one token: identifier, secret and salt.
pub type TokenChance = [u8; ID_BYTES + 2 * SECRET_BYTES];

/// The tokens of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens(BTreeMap<String, StoredToken>);

/// The file of tokens.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    tokens: Vec<StoredToken>,
}

impl Tokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// It is none, or names a role that is unknown.
    pub fn read(text: &str, roles: &Roles) -> Result<Self, TokenError> {
        let malformed = |problem: String| TokenError::Malformed { problem };
        let file: File = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        if file.tokens.len() > TOKENS_MAX {
            return Err(TokenError::TooMany);
        }
        let mut all = BTreeMap::new();
        for token in file.tokens {
            roles.methods(&token.roles)?;
            Tenants::read(&token.tenants)?;
            if salt(&token).is_none() || blake3::Hash::from_hex(&token.hash).is_err() {
                return Err(malformed(format!(
                    "`salt` or `hash` of token `{}` is not 64 hexadecimal digits",
                    token.id
                )));
            }
            if let Some(twice) = all.insert(token.id.clone(), token) {
                return Err(malformed(format!("`id` {} stands there twice", twice.id)));
            }
        }
        Ok(Self(all))
    }

    /// The file that [`Tokens::read`] reads.
    pub fn write(&self) -> String {
        let file = File { tokens: self.0.values().cloned().collect() };
        let mut text = serde_json::to_string_pretty(&file).expect("texts and numbers can be written");
        text.push('\n');
        text
    }

    /// All tokens, by identifier.
    pub fn iter(&self) -> impl Iterator<Item = &StoredToken> {
        self.0.values()
    }

    /// Makes a token.
    ///
    /// # Errors
    /// Its name, a role or a tenant cannot be used, or there are too many.
    pub fn create(
        &mut self,
        purpose: &Purpose<'_>,
        roles: &Roles,
        now_ms: u64,
        chance: &TokenChance,
    ) -> Result<NewToken, TokenError> {
        let name = purpose.name;
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.contains(is_invisible) {
            return Err(TokenError::Name { name: name.chars().take(NAME_CHARS_MAX).collect() });
        }
        roles.methods(purpose.roles)?;
        Tenants::read(purpose.tenants)?;
        if self.0.len() >= TOKENS_MAX {
            return Err(TokenError::TooMany);
        }
        let (id, rest) = chance.split_at(ID_BYTES);
        let (secret, salt) = rest.split_at(SECRET_BYTES);
        let (id, secret) = (hexadecimal(id), Zeroizing::new(hexadecimal(secret)));
        let mut stored = StoredToken {
            id: id.clone(),
            name: name.to_owned(),
            salt: hexadecimal(salt),
            hash: String::new(),
            roles: purpose.roles.to_vec(),
            tenants: purpose.tenants.to_vec(),
            created_ms: now_ms,
            expires_ms: purpose.expires_ms,
            revoked_ms: None,
        };
        stored.hash = hash(&stored, &secret).expect("the salt was just written").to_hex().to_string();
        let text = Zeroizing::new(format!("{PREFIX}{id}_{}", *secret));
        self.0.insert(id, stored.clone());
        Ok(NewToken { text, stored })
    }

    /// Revokes the tokens of this name or identifier that are valid, and says which.
    ///
    /// # Errors
    /// There is no such token.
    pub fn revoke(&mut self, name: &str, now_ms: u64) -> Result<Vec<StoredToken>, TokenError> {
        let mut revoked = Vec::new();
        for token in self.0.values_mut() {
            if (token.name == name || token.id == name) && token.revoked_ms.is_none() && token.expires_ms > now_ms {
                token.revoked_ms = Some(now_ms);
                revoked.push(token.clone());
            }
        }
        if revoked.is_empty() {
            return Err(TokenError::NotFound { name: name.chars().take(NAME_CHARS_MAX).collect() });
        }
        Ok(revoked)
    }

    /// Whether a text looks like a token of ours.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The caller that shows this token.
    ///
    /// # Errors
    /// It is unknown, revoked or has expired; callers that do not know the secret learn nothing about the token.
    pub fn identify(&self, text: &str, roles: &Roles, now_ms: u64) -> Result<Identity, TokenError> {
        let (id, secret) =
            text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(TokenError::Unknown)?;
        let token = self.0.get(id).ok_or(TokenError::Unknown)?;
        let known = blake3::Hash::from_hex(&token.hash).map_err(|_| TokenError::Unknown)?;
        // Hashes are compared in constant time.
        if hash(token, secret) != Some(known) {
            return Err(TokenError::Unknown);
        }
        let name = token.name.clone();
        if token.revoked_ms.is_some() {
            return Err(TokenError::Revoked { name });
        }
        if token.expires_ms <= now_ms {
            return Err(TokenError::Expired { name });
        }
        let grant = Grant { methods: roles.methods(&token.roles)?, tenants: Tenants::read(&token.tenants)? };
        Ok(Identity { name, source: Source::Token, grants: vec![grant], expires_ms: Some(token.expires_ms) })
    }
}

fn salt(token: &StoredToken) -> Option<[u8; SECRET_BYTES]> {
    // A hash has as many bytes as a salt.
    blake3::Hash::from_hex(&token.salt).ok().map(|bytes| *bytes.as_bytes())
}

fn hash(token: &StoredToken, secret: &str) -> Option<blake3::Hash> {
    salt(token).map(|salt| blake3::keyed_hash(&salt, secret.as_bytes()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from_digit(half.into(), 16).unwrap_or('0'));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(tokens: &mut Tokens, name: &str, expires_ms: u64, chance: u8) -> NewToken {
        let (roles, tenants) = (["planner".to_owned()], ["red".to_owned()]);
        let purpose = Purpose { name, roles: &roles, tenants: &tenants, expires_ms };
        let chance = std::array::from_fn(|at| chance.wrapping_add(u8::try_from(at).unwrap()));
        tokens.create(&purpose, &Roles::default(), 5, &chance).unwrap()
    }

    #[test]
    fn a_token_is_known_until_it_ends() {
        let roles = Roles::default();
        let mut tokens = Tokens::default();
        let (a, b) = (made(&mut tokens, "a", 100, 1), made(&mut tokens, "b", 100, 2));
        let tokens = Tokens::read(&tokens.write(), &roles).unwrap();
        let caller = tokens.identify(&a.text, &roles, 99).unwrap();
        assert_eq!((caller.name.as_str(), caller.source, caller.expires_ms), ("a", Source::Token, Some(100)));
        assert!(caller.admit("canopy.v1.Planner/Plan", None, 99).is_ok());
        assert!(caller.admit("canopy.v1.Server/Drain", None, 99).is_err());
        assert_eq!(tokens.identify(&a.text, &roles, 100), Err(TokenError::Expired { name: "a".into() }));
        let mut after = tokens.clone();
        assert_eq!(after.revoke("a", 50).unwrap().len(), 1);
        assert_eq!(after.identify(&a.text, &roles, 60), Err(TokenError::Revoked { name: "a".into() }));
        assert!(after.identify(&b.text, &roles, 60).is_ok());
        assert!(matches!(after.revoke("a", 60), Err(TokenError::NotFound { .. })));
    }

    #[test]
    fn what_is_kept_gives_no_token() {
        let roles = Roles::default();
        let mut tokens = Tokens::default();
        let token = made(&mut tokens, "a", 100, 1);
        let secret = token.text.rsplit('_').next().unwrap();
        assert!(!tokens.write().contains(secret) && !format!("{token:?}").contains(secret));
        let (id, hash) = (&token.stored.id, &token.stored.hash);
        for wrong in [format!("canopy_{id}_{hash}"), format!("canopy_{id}_"), format!("canopy_{id}"), "canopy_".into()]
        {
            assert_eq!(tokens.identify(&wrong, &roles, 6), Err(TokenError::Unknown), "{wrong}");
        }
        let other = token.text.replacen(id, "000000000000", 1);
        assert_eq!(tokens.identify(&other, &roles, 6), Err(TokenError::Unknown));
    }

    #[test]
    fn files_that_are_none_are_refused_with_the_place() {
        let roles = Roles::default();
        let mut tokens = Tokens::default();
        made(&mut tokens, "a", 100, 1);
        let text = tokens.write();
        for (wrong, words) in [
            (String::new(), "cannot be read"),
            ("{\"tokens\": [{}]}".into(), "missing field"),
            (text.replace("\"planner\"", "\"planer\""), "`planer` is not a role"),
            (text.replace("\"red\"", "\"r d\""), "`r d` is not a tenant name"),
            (text.replace("\"salt\": \"", "\"salt\": \"0"), "64 hexadecimal digits"),
            (text.replace("\"name\"", "\"nmae\""), "unknown field `nmae`"),
        ] {
            let error = Tokens::read(&wrong, &roles).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
