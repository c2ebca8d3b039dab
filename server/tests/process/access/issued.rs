//! Tokens and signed tokens for a server, and its files of rules.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use canopy_access::{Purpose, Roles, TokenChance, Tokens};
use data_encoding::BASE64URL_NOPAD as BASE64;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use tonic::Request;

use super::{ROLES, write};

/// Headers that a caller sends.
#[derive(Clone, Default)]
pub(crate) struct Shows(Vec<(&'static str, String)>);

impl Shows {
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    pub(crate) fn header(name: &'static str, value: &str) -> Self {
        Self::default().and(name, value)
    }

    pub(crate) fn and(&self, name: &'static str, value: &str) -> Self {
        let mut all = self.clone();
        all.0.push((name, value.to_owned()));
        all
    }

    fn bearer(token: &str) -> Self {
        Self::header("authorization", &format!("Bearer {token}"))
    }

    /// A request with this message.
    pub(crate) fn with<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in self.headers() {
            request.metadata_mut().append(name, value.parse().unwrap());
        }
        request
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// All that was issued for one server. Everybody acts for tenant `red`.
pub(crate) struct Issued {
    tokens: Tokens,
    texts: Vec<(String, String)>,
    signer: Ed25519KeyPair,
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Chance for the token of this number.
fn chance(number: u8) -> TokenChance {
    std::array::from_fn(|at| number.wrapping_mul(37).wrapping_add(u8::try_from(at).unwrap()))
}

impl Issued {
    pub(crate) fn new() -> Self {
        let (mut tokens, mut texts) = (Tokens::default(), Vec::new());
        let hour = now_ms() + 3_600_000;
        let named = ROLES.iter().map(|(role, _)| (*role, *role, hour));
        let others = [("expired", "admin", 1), ("revoked", "admin", hour)];
        for (number, (name, role, expires_ms)) in named.chain(others).enumerate() {
            let (roles, tenants) = ([role.to_owned()], ["red".to_owned()]);
            let purpose = Purpose { name, roles: &roles, tenants: &tenants, expires_ms };
            let made = tokens.create(&purpose, &Roles::default(), 0, &chance(u8::try_from(number).unwrap())).unwrap();
            texts.push((name.to_owned(), (*made.text).clone()));
        }
        tokens.revoke("revoked", now_ms()).unwrap();
        Self { tokens, texts, signer: Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap() }
    }

    /// Has a server take what was issued.
    pub(crate) fn serve(&self, command: &mut Command, folder: &Path) {
        self.serve_with(command, folder, "");
    }

    /// The same with more rules.
    pub(crate) fn serve_with(&self, command: &mut Command, folder: &Path, more: &str) {
        let keys = json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(self.signer.public_key().as_ref())},
        ]});
        write(&folder.join("keys.json"), &keys.to_string(), 0o644);
        let mut rules =
            "[issuers.site]\nissuer = \"https://site\"\nkeys = \"keys.json\"\naudiences = [\"canopy\"]\n".to_owned();
        for (role, _) in ROLES {
            for who in [format!("issuer = \"site\"\nsubject = \"{role}\""), format!("certificate = \"cn:{role}\"")] {
                rules.push_str(&format!("[[grant]]\n{who}\nroles = [\"{role}\"]\ntenants = [\"red\"]\n"));
            }
        }
        rules.push_str(more);
        write(&folder.join("access.toml"), &rules, 0o644);
        self.write_tokens(folder);
        command.arg("--access").arg(folder.join("access.toml")).arg("--tokens").arg(folder.join("tokens.json"));
    }

    pub(crate) fn write_tokens(&self, folder: &Path) {
        write(&folder.join("tokens.json"), &self.tokens.write(), 0o600);
    }

    pub(crate) fn revoke(&mut self, name: &str) {
        self.tokens.revoke(name, now_ms()).unwrap();
    }

    pub(crate) fn token(&self, name: &str) -> Shows {
        Shows::bearer(&self.texts.iter().find(|(known, _)| known == name).unwrap().1)
    }

    pub(crate) fn expired(&self) -> Shows {
        self.token("expired")
    }

    pub(crate) fn revoked(&self) -> Shows {
        self.token("revoked")
    }

    pub(crate) fn of_another_server(&self) -> Shows {
        let secret = "0".repeat(64);
        let id = self.texts[0].1.split('_').nth(1).unwrap();
        Shows::bearer(&format!("canopy_{id}_{secret}"))
    }

    pub(crate) fn jwt(&self, subject: &str, audience: &str) -> Shows {
        self.signed(subject, audience, 600)
    }

    pub(crate) fn jwt_expired(&self, subject: &str) -> Shows {
        self.signed(subject, "canopy", -600)
    }

    fn signed(&self, subject: &str, audience: &str, seconds: i64) -> Shows {
        let now = i64::try_from(now_ms() / 1000).unwrap();
        let claims = json!({"iss": "https://site", "sub": subject, "aud": audience, "exp": now + seconds});
        let part = |value: &serde_json::Value| BASE64.encode(value.to_string().as_bytes());
        let message = format!("{}.{}", part(&json!({"alg": "EdDSA"})), part(&claims));
        let signature = BASE64.encode(self.signer.sign(message.as_bytes()).as_ref());
        Shows::bearer(&format!("{message}.{signature}"))
    }
}
