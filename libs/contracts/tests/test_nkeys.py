"""Seeds and public keys are spelled as every other NATS program spells them."""

import base64

import pytest
from contracts import nkeys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SEED = "SUALHLH4G7ACHHQ4ACMDUABDPIB5WFI4AFDPWMKDN7EFZAM5ST2H6X5ZZY"
PUBLIC = "UBWT6ZCYCVVT3R7ZOGRJXI6NFNQGVRJUQMYUUZBRK74N4SVII6KP4JWQ"


@pytest.mark.parametrize("_", range(5))
def test_a_new_seed_is_a_users_and_no_other_is_like_it(_: int) -> None:
    seed = nkeys.new_seed()
    assert (seed[:2], len(seed)) == ("SU", 58)
    assert (nkeys.public_key(seed)[:1], len(nkeys.public_key(seed))) == ("U", 56)
    assert seed != nkeys.new_seed()


def test_the_public_key_is_the_one_that_the_reference_derives() -> None:
    assert nkeys.public_key(SEED) == PUBLIC
    assert nkeys.public_key(f"{SEED}\n") == PUBLIC


def test_what_is_signed_is_verified_by_the_public_key() -> None:
    raw = base64.b32decode(PUBLIC + "=" * (-len(PUBLIC) % 8))[1:33]
    Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(nkeys.sign(SEED, "a nonce")), b"a nonce")


CHANGED = SEED[:10] + ("B" if SEED[10] == "A" else "A") + SEED[11:]


@pytest.mark.parametrize("text", ["", "hunter2", PUBLIC, SEED[:-1], CHANGED, "SA" + SEED[2:], SEED.lower(), "é" * 58])
def test_what_is_no_seed_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(nkeys.BadSeed) as refused:
        nkeys.public_key(text)
    assert not text or text not in str(refused.value)
