//! Signatures, verified by ring.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{self as rings, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_to_sign,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes ring the one that verifies, once in a process.
pub(super) fn install() {
    // It was installed before: by this very function, as nothing else here verifies tokens.
    let _before = PROVIDER.install_default();
}

fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

/// How one algorithm verifies.
enum Way {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm, AlgorithmFamily),
}

fn way(algorithm: Algorithm) -> Option<Way> {
    Some(match algorithm {
        Algorithm::RS256 => Way::Rsa(&rings::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Way::Rsa(&rings::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Way::Rsa(&rings::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Way::Rsa(&rings::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Way::Rsa(&rings::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Way::Rsa(&rings::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Way::Other(&rings::ECDSA_P256_SHA256_FIXED, AlgorithmFamily::Ec),
        Algorithm::ES384 => Way::Other(&rings::ECDSA_P384_SHA384_FIXED, AlgorithmFamily::Ec),
        Algorithm::EdDSA => Way::Other(&rings::ED25519, AlgorithmFamily::Ed),
        _ => return None,
    })
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let way = way(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    let family = match way {
        Way::Rsa(_) => AlgorithmFamily::Rsa,
        Way::Other(_, family) => family,
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Verifier { algorithm: *algorithm, way, key: key.clone() }))
}

struct Verifier {
    algorithm: Algorithm,
    way: Way,
    key: DecodingKey,
}

impl JwtVerifier for Verifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl signature::Verifier<Vec<u8>> for Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (&self.way, self.key.kind()) {
            (Way::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Way::Other(algorithm, _), DecodingKeyKind::SecretOrDer(bytes)) => {
                UnparsedPublicKey::new(*algorithm, bytes).verify(message, signature)
            }
            _ => return Err(signature::Error::new()),
        };
        verified.map_err(|_| signature::Error::new())
    }
}
